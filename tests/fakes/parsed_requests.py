"""Requests of both APIs, parsed at once from the bytes of their bodies."""

from backend.foundation.domain.json_objects import result_of, scan_json
from backend.openai_api.domain.chat_request import ChatTurn, chat_request_cooperatively
from backend.openai_api.domain.turn_request import TurnRequest, turn_request_cooperatively


def parse_chat_request(raw: bytes) -> ChatTurn:
    return result_of(chat_request_cooperatively(scan_json(raw)))


def parse_turn_request(raw: bytes) -> TurnRequest:
    return result_of(turn_request_cooperatively(scan_json(raw)))
