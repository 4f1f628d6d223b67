#!/bin/sh
# Prints the tea that needs the most patience.
sort -k2 -n -r teas.txt | head -n 1
