from plant import flower, grow

flower.bloom()
grow()
