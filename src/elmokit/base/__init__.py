"""The ground floor: what every room needs. Nothing here imports torch.

files      write a file or folder completely or not at all
hdf5_output  write HDF5 so that a full disk is an error, not a crash
kinds      tell what a path is that elmokit wrote
locks      let one process at a time write an output
decompression   read plain or compressed files with bounded memory
parsing    parse JSON and TOML that anybody may have written
arrays     read arrays from files that may be damaged
figures    draw pictures
shading    words with colours, in a terminal and in HTML
settings   check the fields of dataclasses, convert them from and to plain data
grouping   group a stream of items, or draw a sample of them
progress   show the progress of long work
shared_pages   keep one copy of the same bytes for all processes of a machine
workers    distribute work over processes
"""

from elmokit.base.arrays import check_hdf5, check_hdf5_heaps, check_safetensors, map_array, read_hdf5
from elmokit.base.decompression import (
    MAX_RATIO,
    SLACK,
    has_packed_ending,
    is_compressed,
    open_plain,
    packed_or_plain,
    plain_lines,
    text_ending,
)
from elmokit.base.figures import COLOURS, bold_if_there, check_picture, drawing
from elmokit.base.files import (
    draft_file,
    draft_folder,
    flush_to_disk,
    fresh_folder,
    move_files,
    no_empty_folder,
    plain_reason,
    remove_folder,
    temporary_folder,
    to_json,
    write_bytes,
    write_errors,
    write_json,
    write_text,
)
from elmokit.base.grouping import group_arriving, group_until, random_sample
from elmokit.base.hdf5_output import open_hdf5
from elmokit.base.kinds import TEXT, Kind, kind_of, other_kind
from elmokit.base.locks import is_held, locked, output_file, remove_remains
from elmokit.base.parsing import counted, parse_count, parse_json, parse_toml, shown
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
from elmokit.base.shading import Shade, shaded_for_terminal, shaded_html
from elmokit.base.shared_pages import share_pages, shared_copy
from elmokit.base.workers import belong_to_parent, can_fork, ordered_map

__all__ = [
    "COLOURS",
    "MAX_RATIO",
    "SLACK",
    "TEXT",
    "Advance",
    "Kind",
    "Shade",
    "StartStep",
    "belong_to_parent",
    "bold_if_there",
    "bounded",
    "can_fork",
    "changed_settings",
    "check_fields",
    "check_flag",
    "check_hdf5",
    "check_hdf5_heaps",
    "check_number",
    "check_option",
    "check_picture",
    "check_safetensors",
    "check_whole_number",
    "counted",
    "draft_file",
    "draft_folder",
    "drawing",
    "flush_to_disk",
    "fresh_folder",
    "group_arriving",
    "group_until",
    "has_packed_ending",
    "is_compressed",
    "is_held",
    "kind_of",
    "locked",
    "map_array",
    "move_files",
    "no_empty_folder",
    "open_hdf5",
    "open_plain",
    "ordered_map",
    "other_kind",
    "output_file",
    "packed_or_plain",
    "parse_count",
    "parse_json",
    "parse_toml",
    "plain_lines",
    "plain_reason",
    "progress_display",
    "random_sample",
    "read_hdf5",
    "refuse_unknown_keys",
    "remove_folder",
    "remove_remains",
    "setting_changes",
    "settings_from_dict",
    "shaded_for_terminal",
    "shaded_html",
    "share_pages",
    "shared_copy",
    "shown",
    "temporary_folder",
    "text_ending",
    "text_progress",
    "to_json",
    "write_bytes",
    "write_errors",
    "write_json",
    "write_text",
]
