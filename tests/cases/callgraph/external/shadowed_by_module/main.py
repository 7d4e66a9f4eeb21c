from mock import patch

patch()
