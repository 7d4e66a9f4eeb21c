import tools
import tools.text as text
from tools.text import shout, whisper as quiet

shout("a")
quiet("b")
text.shout("c")
tools.text.whisper("d")
