import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type {
  ChartTransition,
  ChartView,
  MomentView,
  RecordRow,
  VisitsView,
  ChartState,
} from '../protocol.js'
import { type Highlights, Picture } from './picture.js'
import { useKeys } from './run-hooks.js'
import { createLazyScreen } from './loading.js'
import { formatStatePath, getLastPart, listAncestors } from '../format.js'
import { drawVisitedChart } from '../visited-chart.js'

const StatelyEditor = createLazyScreen(() => import('./stately.js').then((part) => part.StatelyEditor))

export type Overlay = 'run' | 'stored' | 'tests' | 'never'

const overlays: Record<Overlay, string> = {
  run: 'This run',
  stored: 'All sessions',
  tests: 'Tests',
  never: 'Never taken',
}

interface ChartProps {
  chart: ChartView
  row: RecordRow | null
  /** First record that entered a state or took a transition. */
  first: ReadonlyMap<string, number>
  place: number
  /** Duration of the token's move in milliseconds. 0 jumps. */
  ms: number
  visits: VisitsView | null
  overlays: readonly Overlay[]
  onOverlay?: (overlay: Overlay) => void
  onState: (path: string) => void
  onTransition: (ids: readonly string[]) => void
  moment?: MomentView | null
}

export function ChartPane(props: ChartProps) {
  const { chart, visits, row, first, place, onState, onTransition } = props
  const { editor } = chart
  const isRun = props.moment !== undefined
  const canEdit = editor !== undefined && isRun
  const [sheet, setSheet] = useState(canEdit ? 'stately' : isRun ? 'visited' : 'whole')
  const [isEditorReady, setEditorReady] = useState(false)
  const [overlay, setOverlay] = useState<Overlay>(props.overlays[0] ?? 'run')
  const transitions = useMemo(() => new Map(chart.transitions.map((one) => [one.id, one])), [chart])
  const active = row?.to ?? []
  // The chart is redrawn only when the run visits something new.
  const visited = [...first.keys()].join('\n')
  const drawn = useMemo(
    () =>
      sheet === 'visited'
        ? drawVisitedChart(chart, new Set(visited.split('\n')))
        : drawVisitedChart(chart, null),
    [chart, visited, sheet],
  )
  useKeys(isRun ? { c: () => setSheet(sheet === 'visited' ? 'whole' : 'visited') } : {})
  const followed = listAncestors(active[0] ?? '')
  const shown = chart.sheets.findLast(({ id }) =>
    sheet === 'follow' ? followed.includes(id) : id === sheet,
  ) ?? {
    id: sheet === 'visited' ? `visited ${visited}` : 'whole',
    svg: drawn,
  }
  const markOf = useMemo(
    () => createMarker({ chart, visits }, overlay, first, place),
    [chart, visits, overlay, first, place],
  )
  return (
    <section class="chart" aria-label="Chart">
      <div class="chart-bar">
        <label>
          <span class="sr">Picture</span>
          <select value={sheet} onChange={(event) => setSheet(event.currentTarget.value)}>
            {canEdit && <option value="stately">Stately's editor</option>}
            {isRun && <option value="visited">Visited by this run</option>}
            <option value="whole">Whole chart</option>
            {row && <option value="follow">Follow the active state</option>}
            <option value="outline">Outline</option>
            <optgroup label="Sheets">
              {chart.sheets.slice(1).map(({ id, title }) => (
                <option key={id} value={id}>
                  {title}
                </option>
              ))}
            </optgroup>
          </select>
        </label>
        <div class="segments" role="group" aria-label="Highlight">
          {props.overlays.map((one) => (
            <button
              key={one}
              aria-pressed={overlay === one}
              onClick={() => {
                setOverlay(one)
                if (one !== 'run' && sheet === 'visited') setSheet('whole')
                props.onOverlay?.(one)
              }}
            >
              {overlays[one]}
            </button>
          ))}
        </div>
      </div>
      {canEdit && sheet === 'stately' && row && props.moment && (
        <StatelyEditor
          editor={editor}
          row={row}
          moment={props.moment}
          isDone={chart.states.some(({ path, type }) => path === row.to[0] && type === 'final')}
          onReady={setEditorReady}
        />
      )}
      {canEdit && sheet === 'stately' && isEditorReady ? null : sheet === 'outline' ? (
        <Outline chart={chart} active={active} markOf={markOf} onState={onState} />
      ) : (
        <Sheet
          key={shown.id}
          svg={shown.svg}
          lit={{ active, transitionIds: row?.transitionIds ?? [], markOf }}
          row={row}
          ms={props.ms}
          transitions={transitions}
          onState={onState}
          onTransition={onTransition}
        />
      )}
    </section>
  )
}

interface SheetProps extends Partial<Pick<ChartProps, 'row' | 'ms' | 'onState' | 'onTransition'>> {
  svg: string
  lit: Highlights
  transitions?: ReadonlyMap<string, ChartTransition>
}

const zoomStep = 1.25

export function Sheet(props: SheetProps) {
  const { svg, lit, row = null, ms = 0, transitions = new Map(), onState, onTransition } = props
  const box = useRef<HTMLDivElement>(null)
  const picture = useMemo(() => new Picture(svg), [svg])
  /** The zoom factor. Null fits the chart to the width of the pane. */
  const [zoom, setZoom] = useState<number | null>(null)
  const drag = useRef<{ x: number; y: number; left: number; top: number; hasMoved: boolean } | null>(null)
  useLayoutEffect(() => picture.setZoom(zoom), [picture, zoom])
  const zoomBy = (factor: number): void => {
    const now = picture.svg.getBoundingClientRect().width / picture.size.width
    setZoom(Math.min(4, Math.max(0.2, now * factor)))
  }
  const fit = (): void => {
    const { clientWidth = 0, clientHeight = 0 } = box.current ?? {}
    const { width, height } = picture.size
    setZoom(Math.min(clientWidth / width, clientHeight / height))
  }
  useLayoutEffect(() => {
    box.current?.replaceChildren(picture.svg)
  }, [picture])
  useLayoutEffect(() => {
    picture.highlight(lit)
    picture.svg.setAttribute('aria-label', `The chart. Active: ${formatStatePath(lit.active) || 'nothing'}.`)
  }, [picture, lit.active, lit.transitionIds, lit.markOf])
  useLayoutEffect(() => {
    picture.moveToken(row ?? { from: [], to: [], transitionIds: [] }, { transitions, ms })
    const [state] = row?.to ?? []
    const frame = box.current
    if (state === undefined || !frame) return
    // If the sheet does not contain the state, scroll to its heading.
    const [around, at] = [frame.getBoundingClientRect(), picture.findBox(state) ?? picture.findFirstBox()]
    if (!at) return
    frame.scrollBy({
      // Always keep the state's name in view.
      left: Math.min(at.left - 8, at.left + at.width / 2 - around.width / 2) - around.left,
      top: at.top + at.height / 2 - around.top - around.height / 2,
      behavior: ms > 0 ? 'smooth' : 'instant',
    })
    // Only the record moves the token. An overlay does not.
  }, [picture, row])
  const press = ({ button, clientX, clientY, pointerType }: PointerEvent): void => {
    const { scrollLeft: left = 0, scrollTop: top = 0 } = box.current ?? {}
    // Touch scrolls by itself.
    if (button === 0 && pointerType === 'mouse')
      drag.current = { x: clientX, y: clientY, left, top, hasMoved: false }
  }
  const pan = ({ buttons, clientX, clientY }: PointerEvent): void => {
    const now = drag.current
    if (!now || buttons === 0) return
    const [dx, dy] = [clientX - now.x, clientY - now.y]
    now.hasMoved ||= Math.hypot(dx, dy) > 5
    if (now.hasMoved) box.current?.scrollTo({ left: now.left - dx, top: now.top - dy, behavior: 'instant' })
  }
  const click = ({ target }: MouseEvent): void => {
    const isDrag = drag.current?.hasMoved === true
    drag.current = null
    if (isDrag || !(target instanceof Element)) return
    const way = target.closest('[data-transition]')
    const state = target.closest('[data-state]')
    if (way) onTransition?.((way.getAttribute('data-transition') ?? '').split('\n'))
    else if (state) onState?.(state.getAttribute('data-state') ?? '')
  }
  return (
    <div class="picture-frame">
      <div
        class={picture.isNarrow ? 'picture narrow' : 'picture fits'}
        ref={box}
        role="group"
        aria-label="Picture of the chart"
        tabIndex={0}
        onPointerDown={press}
        onPointerMove={pan}
        onClick={click}
      />
      <div class="picture-zoom" role="group" aria-label="Size of the chart">
        <button aria-label="Smaller" onClick={() => zoomBy(1 / zoomStep)}>
          −
        </button>
        <button aria-label="Larger" onClick={() => zoomBy(zoomStep)}>
          +
        </button>
        <button onClick={fit}>Fit</button>
      </div>
    </div>
  )
}

export function countStateVisits(
  { transitions }: Pick<ChartView, 'transitions'>,
  { counts }: VisitsView,
  path: string,
): number {
  const into = transitions.filter(({ target, source }) => target === path && source !== path)
  return Math.max(
    counts[path] ?? 0,
    into.reduce((sum, { id }) => sum + (counts[id] ?? 0), 0),
  )
}

function createMarker(
  { chart, visits }: { chart: ChartView; visits: VisitsView | null },
  overlay: Overlay,
  first: ReadonlyMap<string, number>,
  place: number,
): Highlights['markOf'] {
  if (overlay === 'run') return (id) => ((first.get(id) ?? Infinity) <= place ? 'was' : '')
  const { states, transitions } = chart
  if (overlay === 'tests') {
    const tested = new Set([
      ...states.filter(({ isTested }) => isTested).map(({ path }) => path),
      ...transitions.filter(({ isTested }) => isTested).map(({ id }) => id),
    ])
    return (id) => (tested.has(id) ? 'tested' : '')
  }
  if (visits === null) return () => ''
  const known = new Map<string, number>([
    ...states.map(({ path }) => [path, countStateVisits(chart, visits, path)] as const),
    ...transitions.map(({ id }) => [id, visits.counts[id] ?? 0] as const),
  ])
  const most = Math.max(1, ...transitions.map(({ id }) => visits.counts[id] ?? 0))
  return (id) => {
    const count = known.get(id)
    if (count === undefined) return ''
    if (overlay === 'never') return count === 0 && first.get(id) === undefined ? 'never' : ''
    if (count === 0) return ''
    const heat = Math.ceil((Math.log(count + 1) / Math.log(most + 1)) * 4)
    return heat <= 1 ? 'heat1' : heat === 2 ? 'heat2' : heat === 3 ? 'heat3' : 'heat4'
  }
}

type OutlineProps = Pick<ChartProps, 'chart' | 'onState'> & Pick<Highlights, 'active' | 'markOf'>

function Outline({ chart, active, markOf, onState }: OutlineProps) {
  const states = chart.states.filter(({ type }) => type !== 'history')
  const [chosen, choose] = useState(active[0] ?? states[0]?.path ?? '')
  const list = useRef<HTMLUListElement>(null)
  const isActive = (path: string): boolean => active.some((one) => one === path || one.startsWith(`${path}.`))
  const go = (path: string): void => {
    choose(path)
    list.current?.querySelector<HTMLElement>(`[data-path="${CSS.escape(path)}"]`)?.focus()
  }
  const press = (event: KeyboardEvent): void => {
    const at = states.findIndex(({ path }) => path === chosen)
    const targets: Record<string, ChartState | undefined> = {
      ArrowDown: states[at + 1],
      ArrowUp: states[at - 1],
      Home: states[0],
      End: states.at(-1),
      ArrowLeft: states.find(({ path }) => path === getParentPath(chosen)),
      ArrowRight: states.find(({ path }) => path.startsWith(`${chosen}.`)),
    }
    const to = targets[event.key]
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

export function getParentPath(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('.')))
}
