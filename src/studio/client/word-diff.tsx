import { diffArrays } from 'diff'
import { useMemo } from 'preact/hooks'

/** Longer comparisons than this are given up: the texts are shown as wholly different. */
const longestMs = 120

/** Two texts beside each other, each as it reads, with the words marked that the other one does not have. */
export function WordDiff({ a, b }: { a: string; b: string }) {
  const sides = useMemo(() => compareWords(a, b), [a, b])
  if (a === '' && b === '') return <p class="empty">Neither has said anything.</p>
  return (
    <div class="word-diff" role="group" aria-label="Differences">
      {sides.map((parts, side) => (
        <p key={side} tabIndex={0}>
          <span class="letter">{side === 0 ? 'A' : 'B'}</span>
          {parts.length === 0 && <span class="empty">nothing</span>}
          {parts.map(({ text, differs }, index) => {
            const Part = !differs ? 'span' : side === 0 ? 'del' : 'ins'
            return <Part key={index}>{text}</Part>
          })}
        </p>
      ))}
    </div>
  )
}

interface Part {
  text: string
  differs: boolean
}

/** The parts of both texts. A space between two words that differ belongs to them. */
function compareWords(a: string, b: string): [Part[], Part[]] {
  const parts = diffArrays(splitWords(a), splitWords(b), { timeout: longestMs })
  if (parts === undefined) return [[{ text: a, differs: true }], [{ text: b, differs: true }]]
  const sides: [Part[], Part[]] = [[], []]
  for (const { value, added, removed } of parts) {
    const text = value.join('')
    for (const [at, isHere] of [!added, !removed].entries())
      if (isHere) sides[at]?.push({ text, differs: added || removed })
  }
  for (const side of sides)
    for (const [at, part] of side.entries())
      if (/^[^\S\n]+$/.test(part.text) && side[at - 1]?.differs && side[at + 1]?.differs) part.differs = true
  return sides
}

/** The words, line ends, spaces and signs of a text, one after the other: together they are all of it. */
function splitWords(text: string): string[] {
  return text.match(/[\p{L}\p{M}\p{N}_]+|\r?\n|[^\S\r\n]+|[^]/gu) ?? []
}
