import { useMemo, useRef, useState } from 'preact/hooks'
import { formatDuration } from '../../core/format/format-words.js'
import type { Bar, MomentView, RecordRow } from '../protocol.js'
import { formatJson } from '../format.js'
import { useLoaded } from './loading.js'
import { showTabs, useKeys } from './run-hooks.js'
import type { RunPage } from './run-page.js'
import {
  type Axis,
  createRecordAxis,
  createTimeAxis,
  isAtEnd,
  narrowestZoom,
  type Zoom,
  zoomAxis,
  zoomBy,
} from '../timeline-layout.js'
import { TimelineLanes, toPercent } from './timeline-lanes.js'

const whole: Zoom = { from: 0, to: 1 }
const dragPixels = 5

/** Dragging over the lanes zooms. Dragging over the states, marks or times moves through the records. */
export function Timeline({ run }: { run: RunPage }) {
  const { source, view, place, areLanesShown, now, go } = run
  const { rows, bars, gaps } = view
  const [isByTime, spaceByTime] = useState(true)
  const [zoom, setZoom] = useState(whole)
  const [hovered, setHovered] = useState<{ bar: Bar; x: number } | null>(null)
  const axis = useMemo(() => {
    const plain = isByTime ? createTimeAxis(rows, gaps, now) : createRecordAxis(rows)
    return zoom === whole ? plain : zoomAxis(plain, zoom, rows)
  }, [rows, gaps, isByTime, zoom, now])
  const isZoomed = zoom !== whole
  const body = useMemo(
    () => <TimelineLanes run={run} axis={axis} />,
    [rows, bars, gaps, axis, areLanesShown, source],
  )
  const zoomHere = (factor: number): void =>
    setZoom((before) => {
      const here = before.from + Math.min(1, Math.max(0, axis.at(place))) * (before.to - before.from)
      const next = zoomBy(factor, here, before)
      return next.to - next.from >= 1 ? whole : next
    })
  useKeys({
    t: () => spaceByTime(!isByTime),
    '+': () => zoomHere(0.5),
    '=': () => zoomHere(0.5),
    '-': () => zoomHere(2),
    0: () => setZoom(whole),
  })
  const { selected, ...pointing } = useDrag(axis, rows.length, go, setZoom)
  const hover = ({ target, currentTarget, clientX }: PointerEvent): void => {
    const id = (target as Element).closest('[data-bar]')?.getAttribute('data-bar')
    const bar = id == null ? undefined : bars.find((one) => String(one.id) === id)
    const { left } = (currentTarget as Element).getBoundingClientRect()
    setHovered((before) => (bar ? (before?.bar === bar ? before : { bar, x: clientX - left }) : null))
  }
  return (
    <div class="timeline-frame" onPointerLeave={() => setHovered(null)}>
      <div class="timeline" role="group" aria-label="Timeline" {...pointing} onPointerOver={hover}>
        {body}
        <div class="lane times">
          <span class="times-buttons">
            <button
              class="lane-name spaces"
              aria-pressed={isByTime}
              title="Space records by time or evenly (t)"
              onClick={() => spaceByTime(!isByTime)}
            >
              Time
            </button>
            {isZoomed && (
              <button class="lane-name whole" title="Show everything (0)" onClick={() => setZoom(whole)}>
                Whole
              </button>
            )}
          </span>
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
        <div class="cursor-track" aria-hidden="true">
          <div
            class="cursor"
            style={{ left: toPercent(axis.at(place)) }}
            hidden={!isInSight(axis.at(place))}
          />
          {selected && (
            <div
              class="selected"
              style={{ left: toPercent(selected.from), width: toPercent(selected.to - selected.from) }}
            />
          )}
        </div>
      </div>
      {hovered && !selected && <HoverCard bar={hovered.bar} x={hovered.x} run={run} />}
    </div>
  )
}

const isInSight = (x: number): boolean => x >= 0 && x <= 1

interface Drag {
  from: number
  /** Whether the drag moves through the records. */
  scrubs: boolean
  clientX: number
  track: DOMRect
  hasMoved: boolean
}

function useDrag(
  axis: Axis,
  count: number,
  onPlace: (place: number) => void,
  setZoom: (change: (before: Zoom) => Zoom) => void,
) {
  const drag = useRef<Drag | null>(null)
  const [selected, select] = useState<Zoom | null>(null)
  const goTo = (at: number): void => onPlace(Math.max(0, Math.min(count - 1, Math.floor(at))))
  const shareAt = (clientX: number, { left, width }: DOMRect): number =>
    Math.min(1, Math.max(0, (clientX - left) / Math.max(1, width)))
  const begin = (event: PointerEvent): void => {
    const { target, currentTarget, clientX, button } = event
    if (button !== 0 || (target as Element).closest('button')) return
    const track = (target as Element).closest('.track') ?? (currentTarget as Element).querySelector('.track')
    if (!track) return
    const rect = track.getBoundingClientRect()
    const scrubs = (target as Element).closest('.band, .marks, .times') !== null
    drag.current = { from: shareAt(clientX, rect), scrubs, clientX, track: rect, hasMoved: false }
  }
  const move = ({ clientX, pointerId, currentTarget }: PointerEvent): void => {
    const now = drag.current
    if (!now) return
    if (!now.hasMoved && Math.abs(clientX - now.clientX) < dragPixels) return
    if (!now.hasMoved) (currentTarget as Element).setPointerCapture(pointerId)
    now.hasMoved = true
    const x = shareAt(clientX, now.track)
    if (now.scrubs) goTo(axis.placeAt(x))
    else select({ from: Math.min(x, now.from), to: Math.max(x, now.from) })
  }
  const cancel = (): void => {
    drag.current = null
    select(null)
  }
  const end = ({ target }: PointerEvent): void => {
    const now = drag.current
    cancel()
    if (!now) return
    if (now.hasMoved) {
      if (now.scrubs || !selected) return
      setZoom((before) => {
        const scale = (x: number): number => before.from + x * (before.to - before.from)
        const next = { from: scale(selected.from), to: scale(selected.to) }
        return next.to - next.from < narrowestZoom ? before : next
      })
      return
    }
    const bar = (target as Element).closest<HTMLElement>('[data-place]')
    goTo(bar ? Number(bar.dataset['place']) : axis.placeAt(now.from))
    if (bar) showTabs()
  }
  return { selected, onPointerDown: begin, onPointerMove: move, onPointerUp: end, onPointerCancel: cancel }
}

const shownChars = 400

function HoverCard({ bar, x, run }: { bar: Bar; x: number; run: RunPage }) {
  const { rows } = run.view
  const seq = bar.toSeq ?? rows.at(-1)?.seq ?? 0
  const { value: moment } = useLoaded(`${bar.id} ${seq}`, () => run.loadMoment(seq))
  // Without a moment, the card shows only the bar itself.
  const parts = moment ? describeBar(bar, moment, rows[seq - 1]) : {}
  return (
    <div class="hover-card" aria-hidden="true" style={{ left: `min(${Math.round(x)}px, 100% - 380px)` }}>
      <p>
        <strong>{bar.label}</strong> {bar.status}
        {bar.to !== null && ` · ${formatDuration(bar.to - bar.from)}`}
      </p>
      {Object.entries(parts).map(
        ([name, text]) =>
          text !== null && (
            <p key={name}>
              <small>{name}</small>
              <code>{text.length > shownChars ? `${text.slice(0, shownChars)}…` : text}</code>
            </p>
          ),
      )}
    </div>
  )
}

type Parts = Record<string, string | null>

function describeBar(bar: Bar, { transcript }: MomentView, row: RecordRow | undefined): Parts {
  if (bar.lane === 'model') {
    const answer = bar.status === 'ok' ? transcript.findLast(({ role }) => role === 'assistant') : undefined
    const calls = answer?.calls.map(({ name }) => name).join(', ')
    return { Said: answer?.text || null, Calls: calls || null }
  }
  if (bar.lane !== 'tools' && bar.lane !== 'children') return {}
  const settled = row?.calls.find(({ name }) => name === bar.label)
  const calls = transcript.findLast((message) => message.calls.length > 0)?.calls ?? []
  const call = calls.find(({ id, name }) => (settled ? id === settled.id : name === bar.label))
  if (!call) return {}
  return { Arguments: formatJson(call.arguments), Result: call.result && formatJson(call.result) }
}
