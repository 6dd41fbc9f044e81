from .judging import judge_process, scripted

__all__ = ["judge_process", "scripted"]
