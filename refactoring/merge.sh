#!/bin/bash
# merge.sh ROOT NAME "owned path prefixes" : merges ../NAME into ROOT
ROOT=$1; NAME=$2; OWNED=$3
cd $ROOT || exit 1
git fetch -q ../$NAME $NAME || exit 1
git -c merge.renameLimit=20000 -c merge.directoryRenames=false merge --no-commit --no-ff FETCH_HEAD > ./merge-$NAME.log 2>&1
git status --porcelain | grep -E '^(DD|AU|UD|UA|DU|AA|UU) ' > ./conflicts-$NAME.txt
wc -l < ./conflicts-$NAME.txt
while read -r st f; do
  owned=no; for p in $OWNED; do case $f in $p*) owned=yes;; esac; done
  case $st in
    UU) if [[ $f == *.ts ]]; then
      for k in 1 2 3; do git show ":$k:$f" > ./m$k.ts 2>/dev/null || : > ./m$k.ts; node ./refactor.mjs $ROOT norm "$f" ./m$k.ts ./log-*.jsonl; done
      if git merge-file -q ./m2.ts ./m1.ts ./m3.ts; then cp ./m2.ts "$f"; git add "$f"; echo "three-way $f"; continue; fi
      fi
      if git merge-file -q -p <(git show ":2:$f") <(git show ":1:$f") <(git show ":3:$f") > ./m2.ts; then cp ./m2.ts "$f"; git add "$f"; continue; fi
      if [ $owned = yes ]; then git checkout --theirs -- "$f"; else git checkout --ours -- "$f"; fi; git add "$f"; cp ./m2.ts ./conflicted-$NAME-$(basename $f) 2>/dev/null; echo "TAKEN owned=$owned $f";;
    UD) if [ $owned = yes ]; then git rm -q --cached "$f" 2>/dev/null; rm -f "$f"; else git add "$f"; fi;;
    DU) if [ $owned = yes ]; then git add "$f"; else git rm -q --cached "$f" 2>/dev/null; rm -f "$f"; fi;;
    DD) git rm -q --cached "$f" 2>/dev/null; rm -f "$f";;
    *) echo "look: $st $f";;
  esac
  echo "$st $owned $f"
done < ./conflicts-$NAME.txt
