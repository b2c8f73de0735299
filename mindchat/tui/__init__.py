"""The Textual interface over an injected Session.

Owns: screens, panes, keys, the thread bridge, the line mode. Does not own: how a session is made (wiring), what a slash
command does (commands), what an event means (trace.fold is its only reading). Textual is imported by app, screens and
widgets only, so that `mindchat --version` and the line mode stay light.
"""
