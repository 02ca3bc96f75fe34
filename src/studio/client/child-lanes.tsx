import { useEffect, useState } from 'preact/hooks'
import type { Bar, SessionView } from '../protocol.js'
import type { Axis } from './timeline-axis.js'
import { formatDuration } from './format.js'

interface ChildrenProps {
  /** Those of sub-agents, with the places at which each begins and ends. */
  placed: readonly { bar: Bar; from: number; to: number }[]
  axis: Pick<Axis, 'span'>
  load: (id: string) => Promise<SessionView>
}

/** What sub-agents did while a call of theirs ran, inside its bar: a line for each of them. */
export function ChildLanes({ placed, axis, load }: ChildrenProps) {
  const [views, setViews] = useState<ReadonlyMap<string, SessionView>>(new Map())
  const wanted = placed.flatMap(({ bar }) => bar.sessionId ?? []).join('\n')
  useEffect(() => {
    let isOver = false
    for (const id of new Set(wanted.split('\n').filter(Boolean))) {
      // One that cannot be read has a bar without anything in it.
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
                // A session may have had other tasks before and after.
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
