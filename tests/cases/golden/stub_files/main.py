from speedups import fast

fast(1).bit_length()
