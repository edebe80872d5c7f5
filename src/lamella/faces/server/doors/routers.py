"""The doors: each speaks the wire of a provider. A door is a line here and a file beside the others."""

from fastapi import APIRouter

from lamella.faces.server.doors import anthropic, openai_chat, openai_responses

DOORS: tuple[APIRouter, ...] = (openai_chat.router, openai_responses.router, anthropic.router)
