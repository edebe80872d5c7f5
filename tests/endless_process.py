"""A child that never ends by itself, for what has to end one."""

from time import sleep

while True:
    sleep(60)
