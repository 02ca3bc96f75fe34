import { useRef, useState } from 'preact/hooks'
import type { ChartState, ChartView } from '../protocol.js'
import type { Highlights } from './picture.js'
import { getLastPart } from './format.js'

interface OutlineProps {
  chart: ChartView
  active: readonly string[]
  markOf: Highlights['markOf']
  onState: (path: string) => void
}

/** The chart as a tree of states, which screen readers can read. */
export function Outline({ chart, active, markOf, onState }: OutlineProps) {
  const states = chart.states.filter(({ path, type }) => path !== '(root)' && type !== 'history')
  const [chosen, choose] = useState(active[0] ?? states[0]?.path ?? '')
  const list = useRef<HTMLUListElement>(null)
  const isActive = (path: string): boolean => active.some((one) => one === path || one.startsWith(`${path}.`))
  const go = (path: string): void => {
    choose(path)
    list.current?.querySelector<HTMLElement>(`[data-path="${CSS.escape(path)}"]`)?.focus()
  }
  const press = (event: KeyboardEvent): void => {
    const at = states.findIndex(({ path }) => path === chosen)
    const to =
      event.key === 'ArrowDown'
        ? states[at + 1]
        : event.key === 'ArrowUp'
          ? states[at - 1]
          : event.key === 'Home'
            ? states[0]
            : event.key === 'End'
              ? states.at(-1)
              : event.key === 'ArrowLeft'
                ? states.find(({ path }) => path === chosen.slice(0, Math.max(0, chosen.lastIndexOf('.'))))
                : event.key === 'ArrowRight'
                  ? states.find(({ path }) => path.startsWith(`${chosen}.`))
                  : undefined
    if (event.key === 'Enter' || event.key === ' ') onState(chosen)
    else if (to) go(to.path)
    else if (!event.key.startsWith('Arrow')) return
    event.preventDefault()
    event.stopPropagation()
  }
  const item = (state: ChartState) => {
    const inner = states.filter(
      ({ path }) => path.startsWith(`${state.path}.`) && getParentPath(path) === state.path,
    )
    return (
      <li
        key={state.path}
        role="treeitem"
        aria-selected={isActive(state.path)}
        aria-level={state.path.split('.').length}
        {...(inner.length > 0 && { 'aria-expanded': true })}
        aria-label={`${getLastPart(state.path)}${isActive(state.path) ? ', active' : ''}`}
        tabIndex={chosen === state.path ? 0 : -1}
        data-path={state.path}
        class={`${isActive(state.path) ? 'active' : ''} ${markOf(state.path)}`}
        onFocus={(event) => {
          event.stopPropagation()
          choose(state.path)
        }}
        onClick={(event) => {
          event.stopPropagation()
          choose(state.path)
          onState(state.path)
        }}
      >
        <span class="outline-name">{getLastPart(state.path)}</span>
        <span class="outline-words">{state.description}</span>
        {inner.length > 0 && <ul role="group">{inner.map(item)}</ul>}
      </li>
    )
  }
  return (
    <ul class="outline" role="tree" aria-label="States of the chart" ref={list} onKeyDown={press}>
      {states.filter(({ path }) => !path.includes('.')).map(item)}
    </ul>
  )
}

function getParentPath(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('.')))
}
