import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

const shownText = 2000

export function CodeText({ text, class: kind, first = 800 }: Parameters<typeof LongText>[0]) {
  return (
    <pre tabIndex={0} class={kind}>
      <LongText text={text} first={first} />
    </pre>
  )
}

interface LongTextProps {
  text: string
  class?: string
  first?: number
}

export function LongText({ text, class: kind = '', first = shownText }: LongTextProps) {
  const [more, setMore] = useState(0)
  const limit = Math.max(more, first)
  return (
    <span class={kind} dir="auto">
      {text.slice(0, limit)}
      {text.length > limit && (
        <button class="quiet-button" onClick={() => setMore(limit + 20_000)}>
          … {(text.length - limit).toLocaleString('en')} more characters
        </button>
      )}
    </span>
  )
}

interface TableProps {
  class?: string
  caption?: string
  head: readonly ComponentChildren[]
  children: ComponentChildren
}

export function Table({ class: kind, caption, head, children }: TableProps) {
  return (
    <table class={kind}>
      {caption !== undefined && <caption class="sr">{caption}</caption>}
      <thead>
        <tr>
          {head.map((name, index) => (
            <th key={index} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  )
}
