import unittest


def compute(x):
    return x + 1


class ComputeTest(unittest.TestCase):
    def setUp(self):
        self.value = self.make()

    def make(self):
        return 1

    def test_compute(self):
        self.assertEqual(compute(self.value), 2)
        with self.assertRaises(TypeError):
            compute(None)
