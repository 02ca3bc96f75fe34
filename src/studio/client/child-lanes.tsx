import { useEffect, useState } from 'preact/hooks'
import type { Bar, SessionView } from '../protocol.js'
import type { Axis } from './timeline-axis.js'
import { formatDuration } from './format.js'

interface ChildrenProps {
  /** The bars of sub-agents, with the records at which they begin and end. */
  placed: readonly { bar: Bar; from: number; to: number }[]
  axis: Pick<Axis, 'span'>
  load: (id: string) => Promise<SessionView>
}

/** The bars of each sub-agent, on a line below the bar of its call. */
export function ChildLanes({ placed, axis, load }: ChildrenProps) {
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
