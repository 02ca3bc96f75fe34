import { Fragment } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Bar, RecordRow, SessionView } from '../protocol.js'
import { Children } from './children.js'
import { placeBars, stretchesOf } from './layout.js'
import { duration, lastPart, toneOf } from './words.js'

const lanes: Record<Bar['lane'], string> = {
  model: 'Model',
  tools: 'Tools',
  shields: 'Shields',
  memory: 'Memory',
  waits: 'Waits',
  children: 'Sub-agents',
}

/** Signs for what happened at a record: colour is never all that tells them apart. */
const signs: Record<RecordRow['flags'][number], readonly [sign: string, words: string]> = {
  retry: ['↻', 'retry'],
  nudge: ['!', 'a guard nudges'],
  block: ['⊘', 'a guard blocks'],
  halt: ['■', 'a guard halts'],
  budget: ['$', 'budget'],
  resume: ['▸', 'resumed'],
  fork: ['⑂', 'fork'],
  error: ['✕', 'error'],
  truncated: ['…', 'truncated'],
  wait: ['?', 'waits for a person'],
}

interface TimelineProps {
  view: SessionView
  place: number
  areLanesShown: boolean
  load: (id: string) => Promise<SessionView>
  onPlace: (place: number) => void
}

/** A band of states, the marks of what happened, and a lane for each kind of work. The slider says the same in words. */
export function Timeline({ view, place, areLanesShown, load, onPlace }: TimelineProps) {
  const { rows, bars } = view
  // A thousand bars are drawn once the rest can be seen.
  const [isDue, setDue] = useState(rows.length < 200)
  useEffect(() => {
    if (isDue) return undefined
    const timer = setTimeout(() => setDue(true), 50)
    return () => clearTimeout(timer)
  }, [isDue])
  const [areChildrenOpen, openChildren] = useState(false)
  const body = useMemo(
    () => <Body {...{ rows, bars, gaps: view.gaps, areLanesShown, isDue, areChildrenOpen, load }} />,
    [rows, bars, view.gaps, areLanesShown, isDue, areChildrenOpen, load],
  )
  const count = rows.length
  const click = (event: MouseEvent): void => {
    const { target, currentTarget } = event
    if ((target as Element).closest('.folds')) return openChildren(!areChildrenOpen)
    const track = (target as Element).closest('.track') ?? (currentTarget as Element).querySelector('.track')
    if (!track) return undefined
    const { left, width } = track.getBoundingClientRect()
    const bar = (target as Element).closest<HTMLElement>('[data-place]')
    const at = bar ? Number(bar.dataset.place) : Math.floor(((event.clientX - left) / width) * count)
    return onPlace(Math.max(0, Math.min(count - 1, Math.floor(at))))
  }
  return (
    <div class="timeline" onClick={click} aria-hidden="true">
      {body}
      <div class="cursor-track">
        <div class="cursor" style={{ left: percent(place + 0.5, count) }} />
      </div>
    </div>
  )
}

function percent(place: number, count: number): string {
  return `${(place / Math.max(1, count)) * 100}%`
}

interface BodyProps
  extends Pick<SessionView, 'rows' | 'bars' | 'gaps'>,
    Pick<TimelineProps, 'areLanesShown' | 'load'> {
  areChildrenOpen: boolean
  isDue: boolean
}

function Body({ rows, bars, gaps, areLanesShown, isDue, areChildrenOpen, load }: BodyProps) {
  const count = rows.length
  const places = new Map(rows.map(({ seq }, index) => [seq, index]))
  const placeOf = (seq: number): number => places.get(seq) ?? 0
  const shown = (Object.keys(lanes) as Bar['lane'][]).filter((lane) => bars.some((bar) => bar.lane === lane))
  const gapPlaces = gaps.map(({ to }) => rows.findIndex(({ at }) => at >= to)).filter((at) => at > 0)
  return (
    <>
      <div class="lane band">
        <span class="lane-name">State</span>
        <div class="track">
          {(isDue ? stretchesOf(rows) : []).map(({ state, from, to }) => (
            <div
              key={from}
              class={`stretch tone-${toneOf(state)} region-${lastPart(state)}`}
              style={{ left: percent(from, count), width: percent(to - from, count) }}
              title={state.replaceAll('.', ' › ')}
              data-place={from}
            >
              {(to - from) / count > 0.045 ? lastPart(state) : ''}
            </div>
          ))}
          {gapPlaces.map((at) => (
            <div key={at} class="gap" style={{ left: percent(at, count) }} title="No process had it" />
          ))}
        </div>
      </div>
      {rows.some(({ flags }) => flags.length > 0) && (
        <div class="lane marks">
          <span class="lane-name">Marks</span>
          <div class="track">
            {rows.flatMap(({ flags, seq }, index) =>
              flags.length === 0
                ? []
                : [
                    <span
                      key={seq}
                      class={`flag flag-${flags[0] ?? ''}`}
                      style={{ left: percent(index + 0.5, count) }}
                      title={flags.map((flag) => signs[flag][1]).join(', ')}
                      data-place={index}
                    >
                      {signs[flags[0] ?? 'error'][0]}
                    </span>,
                  ],
            )}
          </div>
        </div>
      )}
      {(areLanesShown && isDue ? shown : []).map((lane) => {
        const placed = placeBars(
          bars.filter((bar) => bar.lane === lane),
          placeOf,
          count,
        )
        const lines = Math.max(...placed.map(({ line }) => line)) + 1
        const folds = lane === 'children' && placed.some(({ bar }) => bar.sessionId !== undefined)
        return (
          <Fragment key={lane}>
            <div class={`lane lane-${lane} lines-${lines}`}>
              <span class={folds ? 'lane-name folds' : 'lane-name'}>
                {folds ? (areChildrenOpen ? '▾ ' : '▸ ') : ''}
                {lanes[lane]}
              </span>
              <div class="track">
                {placed.map(({ bar, from, to, line }) => (
                  <div
                    key={bar.id}
                    class={`bar ${bar.status} line-${line}`}
                    style={{
                      left: percent(from + 0.5, count),
                      width: percent(Math.max(0.5, to - from), count),
                    }}
                    title={`${bar.label}: ${bar.status}${bar.to === null ? '' : `, ${duration(bar.to - bar.from)}`}`}
                    data-place={from}
                  >
                    {(to - from) / count > 0.06 ? bar.label : ''}
                  </div>
                ))}
              </div>
            </div>
            {folds && areChildrenOpen && <Children placed={placed} count={count} load={load} />}
          </Fragment>
        )
      })}
    </>
  )
}
