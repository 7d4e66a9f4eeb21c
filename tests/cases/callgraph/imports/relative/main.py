from app.service import serve

serve()
