import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { formatCount } from '../../core/format/format-words.js'
import { LongText } from './long-text.js'

interface JsonProps {
  value: unknown
  /** Dotted paths of changed values. */
  changed?: readonly string[]
  path?: string
  name?: string
  depth?: number
}

const shownItems = 40

export function JsonTree({ value, changed = [], path = '', name, depth = 0 }: JsonProps) {
  const isChanged = path !== '' && changed.some((one) => one === path || path.startsWith(`${one}.`))
  const holdsChange = changed.some((one) => path === '' || one === path || one.startsWith(`${path}.`))
  const [opened, open] = useState<boolean | null>(null)
  const [limit, setLimit] = useState(shownItems)
  const label = name === undefined ? null : <span class="json-key">{name}</span>
  const mark = isChanged ? ' changed' : ''
  const leaf = (text: ComponentChildren) => (
    <div class={`json-leaf${mark}`}>
      {label}
      {text}
    </div>
  )
  if (typeof value === 'string') return leaf(<LongText text={value} class="json-text" />)
  if (typeof value !== 'object' || value === null)
    return leaf(<span class="json-value">{String(value)}</span>)
  const entries = Object.entries(value)
  if (entries.length === 0)
    return leaf(<span class="json-empty">{Array.isArray(value) ? 'empty list' : 'empty'}</span>)
  const isOpen = opened ?? (depth < 1 || (holdsChange && depth < 3) || entries.length < 4)
  return (
    <div class={`json-branch${mark}`}>
      {name !== undefined && (
        <button class="json-fold folds" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
          {label}
          <span class="json-count">
            {Array.isArray(value) ? `${entries.length} in a list` : formatCount(entries.length, 'key')}
          </span>
        </button>
      )}
      {isOpen && (
        <div class={name === undefined ? 'json-root' : 'json-inside'}>
          {entries.slice(0, limit).map(([key, inner]) => (
            <JsonTree
              key={key}
              name={key}
              value={inner}
              changed={changed}
              path={path === '' ? key : `${path}.${key}`}
              depth={depth + 1}
            />
          ))}
          {entries.length > limit && (
            <button class="quiet-button" onClick={() => setLimit(limit + 200)}>
              {entries.length - limit} more
            </button>
          )}
        </div>
      )}
    </div>
  )
}

/** Facts without a value are left out. */
export function Facts({ of }: { of: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="facts">
      {Object.entries(of).map(
        ([name, value]) =>
          !['', false, null, undefined].includes(value as '') && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
