"""The ground floor: what every room needs. Nothing here imports torch.

files      write a file or folder completely or not at all
settings   check the fields of dataclasses, convert them from and to plain data
grouping   group a stream of items
progress   show the progress of long work
workers    distribute work over processes
"""

from elmokit.base.files import (
    draft_file,
    draft_folder,
    flush_to_disk,
    fresh_folder,
    move_files,
    plain_reason,
    remove_drafts,
    temporary_folder,
    write_bytes,
    write_json,
    write_text,
)
from elmokit.base.grouping import group_until
from elmokit.base.progress import Advance, StartStep, progress_display, text_progress
from elmokit.base.settings import (
    bounded,
    changed_settings,
    check_fields,
    check_flag,
    check_number,
    check_option,
    check_whole_number,
    refuse_unknown_keys,
    setting_changes,
    settings_from_dict,
)
from elmokit.base.workers import belong_to_parent, can_fork, ordered_map

__all__ = [
    "Advance",
    "StartStep",
    "belong_to_parent",
    "bounded",
    "can_fork",
    "changed_settings",
    "check_fields",
    "check_flag",
    "check_number",
    "check_option",
    "check_whole_number",
    "draft_file",
    "draft_folder",
    "flush_to_disk",
    "fresh_folder",
    "group_until",
    "move_files",
    "ordered_map",
    "plain_reason",
    "progress_display",
    "refuse_unknown_keys",
    "remove_drafts",
    "setting_changes",
    "settings_from_dict",
    "temporary_folder",
    "text_progress",
    "write_bytes",
    "write_json",
    "write_text",
]
