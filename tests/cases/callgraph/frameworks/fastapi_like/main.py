from fastapi import Depends, FastAPI

from services import UserService, get_service

app = FastAPI()


@app.get("/users")
async def users(service: UserService = Depends(get_service)):
    return await service.all()
