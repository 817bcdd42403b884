"""Fast paths behind one interface each: products by precision, LSTM loops, threads, memory, devices."""
