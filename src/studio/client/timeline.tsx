import { Fragment } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Bar, SessionView } from '../protocol.js'
import { type Axis, createRecordAxis, createTimeAxis, isAtEnd } from './timeline-axis.js'
import { placeBars, listStretches } from './timeline-layout.js'
import { formatDuration, getLastPart, getTone } from './format.js'
import { flagWords, Icon, sortFlags } from './icons.js'

const lanes: Record<Bar['lane'], string> = {
  model: 'Model',
  tools: 'Tools',
  shields: 'Shields',
  memory: 'Memory',
  waits: 'Waits',
  children: 'Sub-agents',
}

interface TimelineProps {
  view: SessionView
  place: number
  areLanesShown: boolean
  load: (id: string) => Promise<SessionView>
  onPlace: (place: number) => void
}

/**
 * A band of states, marks for events, time labels, and a lane for each kind of work: by record, or by time. For screen
 * readers, the slider says the same in words.
 */
export function Timeline({ view, place, areLanesShown, load, onPlace }: TimelineProps) {
  const { rows, bars, gaps } = view
  // With many bars, the rest of the page is drawn first.
  const [isDue, setDue] = useState(rows.length < 200)
  useEffect(() => {
    if (isDue) return undefined
    const timer = setTimeout(() => setDue(true), 50)
    return () => clearTimeout(timer)
  }, [isDue])
  const [areChildrenOpen, openChildren] = useState(false)
  const [isByTime, spaceByTime] = useState(false)
  const axis = useMemo(
    () => (isByTime ? createTimeAxis(rows, gaps) : createRecordAxis(rows)),
    [rows, gaps, isByTime],
  )
  const body = useMemo(
    () => (
      <Body
        {...{ rows, bars, gaps, axis, areLanesShown, isDue, load, areChildrenOpen, openChildren }}
        {...{ isByTime, spaceByTime }}
      />
    ),
    [rows, bars, gaps, axis, areLanesShown, isDue, areChildrenOpen, load],
  )
  const click = (event: MouseEvent): void => {
    const { target, currentTarget } = event
    if ((target as Element).closest('button')) return undefined
    const track = (target as Element).closest('.track') ?? (currentTarget as Element).querySelector('.track')
    if (!track) return undefined
    const { left, width } = track.getBoundingClientRect()
    const bar = (target as Element).closest<HTMLElement>('[data-place]')
    const at = bar ? Number(bar.dataset['place']) : axis.placeAt((event.clientX - left) / width)
    return onPlace(Math.max(0, Math.min(rows.length - 1, Math.floor(at))))
  }
  return (
    <div class="timeline" role="group" aria-label="Timeline" onClick={click}>
      {body}
      <div class="cursor-track" aria-hidden="true">
        <div class="cursor" style={{ left: toPercent(axis.at(place)) }} />
      </div>
    </div>
  )
}

function toPercent(share: number): string {
  return `${share * 100}%`
}

interface BodyProps
  extends Pick<SessionView, 'rows' | 'bars' | 'gaps'>,
    Pick<TimelineProps, 'areLanesShown' | 'load'> {
  axis: Axis
  isDue: boolean
  isByTime: boolean
  spaceByTime: (isByTime: boolean) => void
  areChildrenOpen: boolean
  openChildren: (areOpen: boolean) => void
}

function Body(props: BodyProps) {
  const { rows, bars, gaps, axis, areLanesShown, isDue, load, areChildrenOpen, openChildren } = props
  const places = new Map(rows.map(({ seq }, index) => [seq, index]))
  const placeOf = (seq: number): number => places.get(seq) ?? 0
  const shown = (Object.keys(lanes) as Bar['lane'][]).filter((lane) => bars.some((bar) => bar.lane === lane))
  const gapPlaces = gaps.map(({ to }) => rows.findIndex(({ at }) => at >= to)).filter((at) => at > 0)
  return (
    <>
      <div class="lane band">
        <span class="lane-name">State</span>
        <div class="track" aria-hidden="true">
          {(isDue ? listStretches(rows) : []).map(({ state, from, to }) => (
            <div
              key={from}
              class={`stretch tone-${getTone(state)} region-${getLastPart(state)}`}
              style={toSpan(axis.edge(from), axis.edge(to))}
              title={state.replaceAll('.', ' › ')}
              data-place={from}
            >
              {axis.edge(to) - axis.edge(from) > 0.045 ? getLastPart(state) : ''}
            </div>
          ))}
          {axis.cuts.map(({ from, to, ms }) => (
            <div
              key={from}
              class="cut"
              style={toSpan(from, to)}
              title={`${formatDuration(ms)} without work`}
            />
          ))}
          {gapPlaces.map((at) => (
            <div key={at} class="gap" style={{ left: toPercent(axis.edge(at)) }} title="No process had it" />
          ))}
        </div>
      </div>
      {rows.some(({ flags }) => flags.length > 0) && (
        <div class="lane marks">
          <span class="lane-name">Marks</span>
          <div class="track" aria-hidden="true">
            {rows.flatMap((row, index) => {
              const flags = sortFlags(row.flags)
              const [gravest] = flags
              return gravest === undefined
                ? []
                : [
                    <span
                      key={row.seq}
                      class={`flag flag-${gravest}`}
                      style={{ left: toPercent(axis.at(index)) }}
                      title={flags.map((flag) => flagWords[flag]).join(', ')}
                      data-place={index}
                    >
                      <Icon name={gravest} size={14} />
                    </span>,
                  ]
            })}
          </div>
        </div>
      )}
      {(areLanesShown && isDue ? shown : []).map((lane) => {
        const placed = placeBars(
          bars.filter((bar) => bar.lane === lane),
          placeOf,
          rows.length,
        )
        const lines = Math.max(...placed.map(({ line }) => line)) + 1
        const folds = lane === 'children' && placed.some(({ bar }) => bar.sessionId !== undefined)
        return (
          <Fragment key={lane}>
            <div class={`lane lane-${lane} lines-${lines}`}>
              {folds ? (
                <button
                  type="button"
                  class="lane-name folds"
                  aria-expanded={areChildrenOpen}
                  onClick={() => openChildren(!areChildrenOpen)}
                >
                  {lanes[lane]}
                </button>
              ) : (
                <span class="lane-name">{lanes[lane]}</span>
              )}
              <div class="track" aria-hidden="true">
                {placed.map((one) => {
                  const { bar, from, line } = one
                  const [left, right] = axis.span(one)
                  return (
                    <div
                      key={bar.id}
                      class={`bar ${bar.status} line-${line}`}
                      style={toSpan(left, right)}
                      title={`${bar.label}: ${bar.status}${bar.to === null ? '' : `, ${formatDuration(bar.to - bar.from)}`}`}
                      data-place={from}
                    >
                      {right - left > 0.06 ? bar.label : ''}
                    </div>
                  )
                })}
              </div>
            </div>
            {folds && areChildrenOpen && <ChildLanes placed={placed} axis={axis} load={load} />}
          </Fragment>
        )
      })}
      <div class="lane times">
        <button
          type="button"
          class="lane-name spaces"
          aria-pressed={props.isByTime}
          title="Space the records by time"
          onClick={() => props.spaceByTime(!props.isByTime)}
        >
          Time
        </button>
        <div class="track" aria-hidden="true">
          {axis.ticks.map((tick) => (
            <span
              key={tick.x}
              class={isAtEnd(tick) ? 'tick last' : 'tick'}
              style={{ left: toPercent(tick.x) }}
            >
              {tick.text}
            </span>
          ))}
        </div>
      </div>
    </>
  )
}

function toSpan(from: number, to: number): { left: string; width: string } {
  return { left: toPercent(from), width: toPercent(Math.max(0, to - from)) }
}

interface ChildrenProps {
  /** The bars of sub-agents, with the records at which they begin and end. */
  placed: readonly { bar: Bar; from: number; to: number }[]
  axis: Pick<Axis, 'span'>
  load: (id: string) => Promise<SessionView>
}

/** The bars of each sub-agent, on a line below the bar of its call. */
function ChildLanes({ placed, axis, load }: ChildrenProps) {
  const [views, setViews] = useState<ReadonlyMap<string, SessionView>>(new Map())
  const wanted = placed.flatMap(({ bar }) => bar.sessionId ?? []).join('\n')
  useEffect(() => {
    let isOver = false
    for (const id of new Set(wanted.split('\n').filter(Boolean))) {
      // The line of an unreadable session stays empty.
      load(id).then(
        (view) => isOver || setViews((before) => new Map(before).set(id, view)),
        () => undefined,
      )
    }
    return () => {
      isOver = true
    }
  }, [wanted, load])
  return (
    <>
      {placed.map((one) => {
        const { bar, from } = one
        const [left, right] = axis.span(one)
        const inner = views.get(bar.sessionId ?? '')?.bars ?? []
        const end = bar.to ?? Math.max(bar.from, ...inner.map((own) => own.to ?? own.from))
        const at = (time: number): number =>
          left +
          (end > bar.from ? Math.min(1, Math.max(0, (time - bar.from) / (end - bar.from))) : 0) *
            (right - left)
        return (
          <div key={bar.id} class="lane inner-lane">
            <span class="lane-name">↳ {bar.label}</span>
            <div class="track" aria-hidden="true">
              {inner
                // The session may have done other tasks before and after.
                .filter((own) => own.from <= end && (own.to ?? end) >= bar.from)
                .map((own) => (
                  <div
                    key={own.id}
                    class={`bar ${own.status} of-${own.lane}`}
                    style={{
                      left: `${at(own.from) * 100}%`,
                      width: `${(at(own.to ?? end) - at(own.from)) * 100}%`,
                    }}
                    title={`${bar.label}: ${own.label}, ${own.status}${own.to === null ? '' : `, ${formatDuration(own.to - own.from)}`}`}
                    data-place={from}
                  />
                ))}
            </div>
          </div>
        )
      })}
    </>
  )
}
