#!/usr/bin/env bash
# Train the bundled models of elmokit 0.2, each in a folder of its own below the current one.
#
#   ELMOKIT_DATA=… recipes/bundled.sh en|zh|de|en-tiny [TOKENS]
#
# The text is in $ELMOKIT_DATA/lm. Called again, it continues the run; a budget of TOKENS may be another one each time, and the
# step falls over its last fifth. So to end a run that has read T tokens now, call it with T / 0.8.
set -eu
name=$1
recipes=$(cd "$(dirname "$0")" && pwd)
text=${ELMOKIT_DATA:?the folder with the text}/lm
export OMP_WAIT_POLICY=PASSIVE

corpus() {  # NAME OPTION… FILE…: prepare a corpus, once
  [ -e "$1" ] || elmokit prepare "${@:2}" -o "$1"
}

train() {  # FOLDER CORPUS TOKENS OPTION…: start or continue a run
  if [ -e "$1/training/run.json" ]; then elmokit pretrain --resume "$1" --train-tokens "$3"
  else elmokit pretrain "$2" --train-tokens "$3" "${@:4}" --out "$1"; fi
}

english="$text/en-wikipedia.txt.xz $text/en-news.txt.xz $text/en-books.txt.xz $text/en-talk.txt.xz"
case $name in
en)
  corpus corpus-en --language en --max-vocab 60000 --heldout "$text/en-wikipedia-heldout.txt.xz" $english
  train en-2 corpus-en "${2:-300000000}" --from en --grow --recipe "$recipes/en-2.toml" ;;
zh)
  corpus corpus-zh --language zh --max-vocab 12500 --heldout "$text/zh-wikipedia-heldout.txt.xz" \
    "$text/zh-wikipedia.txt.xz" "$text/zh-more.txt.xz"
  train zh-2 corpus-zh "${2:-60000000}" --from zh --grow --recipe "$recipes/zh-2.toml" ;;
de)
  corpus corpus-de --language de --max-vocab 36000 --heldout "$text/de-prose-heldout.txt" "$text/de-prose.txt.xz"
  train de-1 corpus-de "${2:-36000000}" --recipe "$recipes/de.toml" ;;
en-tiny)
  corpus corpus-en-tiny --language en --max-vocab 20000 --heldout "$text/en-wikipedia-heldout.txt.xz" $english
  train en-tiny-1 corpus-en-tiny "${2:-60000000}" --teacher en --recipe "$recipes/en-tiny.toml" ;;
*) echo "unknown model $name" >&2; exit 2 ;;
esac
