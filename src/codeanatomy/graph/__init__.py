"""Graph: nodes, edges and properties of the code property graph, from the facts of the other stages."""
