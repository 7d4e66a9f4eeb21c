import net.http.client
import net.mail

net.http.client.connect()
net.mail.send()
net.ping()
