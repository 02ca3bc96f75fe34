import { useEffect, useState } from 'preact/hooks'
import type { Bar, SessionView } from '../protocol.js'
import { duration } from './words.js'

interface ChildrenProps {
  /** Those of sub-agents, with the places at which each begins and ends. */
  placed: readonly { bar: Bar; from: number; to: number }[]
  count: number
  load: (id: string) => Promise<SessionView>
}

/** What sub-agents did while a call of theirs ran, inside its bar: a line for each of them. */
export function Children({ placed, count, load }: ChildrenProps) {
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
      {placed.map(({ bar, from, to }) => {
        const inner = views.get(bar.sessionId ?? '')?.bars ?? []
        const end = bar.to ?? Math.max(bar.from, ...inner.map((one) => one.to ?? one.from))
        const placeAt = (time: number): number =>
          from +
          (end > bar.from ? Math.min(1, Math.max(0, (time - bar.from) / (end - bar.from))) : 0) * (to - from)
        return (
          <div key={bar.id} class="lane inner-lane">
            <span class="lane-name">↳ {bar.label}</span>
            <div class="track">
              {inner
                // A session may have had other tasks before and after.
                .filter((one) => one.from <= end && (one.to ?? end) >= bar.from)
                .map((one) => (
                  <div
                    key={one.id}
                    class={`bar ${one.status} of-${one.lane}`}
                    style={{
                      left: `${((placeAt(one.from) + 0.5) / count) * 100}%`,
                      width: `${((placeAt(one.to ?? end) - placeAt(one.from)) / count) * 100}%`,
                    }}
                    title={`${bar.label}: ${one.label}, ${one.status}${one.to === null ? '' : `, ${duration(one.to - one.from)}`}`}
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
