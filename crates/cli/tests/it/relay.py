"""Stands between a daemon and its worker, and cuts their connections when it is told to.

Usage: relay.py SOCKET FOLDER. It listens on SOCKET and speaks to SOCKET.real. Each connection adds a
byte to FOLDER/connections; when FOLDER/cuts grows, all connections are closed.
"""
import os
import socket
import sys
import threading
import time

path, folder = sys.argv[1:]
live = []


def cuts():
    try:
        return os.path.getsize(os.path.join(folder, "cuts"))
    except OSError:
        return 0


def carry(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def watch():
    seen = 0
    while True:
        if cuts() > seen:
            seen = cuts()
            while live:
                for end in live.pop():
                    try:
                        end.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
        time.sleep(0.01)


def connect():
    while True:
        try:
            far = socket.socket(socket.AF_UNIX)
            far.connect(path + ".real")
            return far
        except OSError:
            time.sleep(0.01)


connect().close()
threading.Thread(target=watch, daemon=True).start()
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(64)
while True:
    near, _ = listener.accept()
    far = connect()
    live.append((near, far))
    for ends in ((near, far), (far, near)):
        threading.Thread(target=carry, args=ends, daemon=True).start()
    with open(os.path.join(folder, "connections"), "a") as counted:
        counted.write(".")
