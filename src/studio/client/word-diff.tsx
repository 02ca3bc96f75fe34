import { diffWordsWithSpace } from 'diff'
import { useMemo } from 'preact/hooks'
import { showControls } from './format.js'

/** Longer comparisons than this are given up, and shown as one text in place of the other. */
const longestMs = 120

/** Two texts as one: what only the first has is struck out, what only the second has is underlined. */
export function WordDiff({ a, b }: { a: string; b: string }) {
  const parts = useMemo(
    () =>
      diffWordsWithSpace(a, b, { timeout: longestMs }) ?? [
        { value: a, removed: true, added: false },
        { value: b, removed: false, added: true },
      ],
    [a, b],
  )
  if (a === '' && b === '') return <p class="empty">Neither has said anything.</p>
  return (
    <div class="word-diff" tabIndex={0} role="group" aria-label="Differences">
      {parts.map(({ value, added, removed }, index) =>
        removed ? (
          <del key={index}>{showControls(value)}</del>
        ) : added ? (
          <ins key={index}>{showControls(value)}</ins>
        ) : (
          showControls(value)
        ),
      )}
    </div>
  )
}
