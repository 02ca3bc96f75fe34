import { diffArrays } from 'diff'
import { useMemo } from 'preact/hooks'
import { showControls } from './format.js'

/** Longer comparisons than this are given up, and shown as one text in place of the other. */
const longestMs = 120

/** Two texts as one: what only the first has is struck out, what only the second has is underlined. */
export function WordDiff({ a, b }: { a: string; b: string }) {
  const parts = useMemo(
    () =>
      diffArrays(splitWords(a), splitWords(b), { timeout: longestMs }) ?? [
        { value: [a], removed: true, added: false },
        { value: [b], removed: false, added: true },
      ],
    [a, b],
  )
  if (a === '' && b === '') return <p class="empty">Neither has said anything.</p>
  return (
    <div class="word-diff" tabIndex={0} role="group" aria-label="Differences">
      {parts.map(({ value, added, removed }, index) => {
        const Part = removed ? 'del' : added ? 'ins' : 'span'
        return <Part key={index}>{showControls(value.join(''))}</Part>
      })}
    </div>
  )
}

/** The words, line ends, spaces and signs of a text, one after the other: together they are all of it. */
function splitWords(text: string): string[] {
  return text.match(/[\p{L}\p{M}\p{N}_]+|\r?\n|[^\S\r\n]+|[^]/gu) ?? []
}
