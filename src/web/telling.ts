import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { EventReader } from './run-feed.js'
import { type Frames, sseFrame } from './sse.js'

/** What a protocol makes of an answer's events. */
export interface TellingFold<Told> {
  hear(event: AgentEvent): readonly Told[]
  end(): readonly Told[] | Promise<readonly Told[]>
}

/** What there is to tell, whenever it is asked for; null once there is nothing more. */
export interface Telling<Told> {
  next(): Promise<Told[] | null>
}

/** An answer as its page is told it, `first` before anything is heard. */
export function tellingOf<Told>(
  reader: EventReader,
  fold: TellingFold<Told>,
  first: readonly Told[] = [],
): Telling<Told> {
  let told: Told[] = [...first]
  let isOver = false
  return {
    next: async () => {
      while (told.length === 0 && !isOver) {
        const events = reader.take()
        if (events === null) {
          isOver = true
          told.push(...(await fold.end()))
        } else if (events.length === 0) await reader.news()
        else for (const event of events) told.push(...fold.hear(event))
      }
      const news = told
      told = []
      return news.length === 0 && isOver ? null : news
    },
  }
}

/** The same as frames of an event stream; `last` is sent after everything else. */
export function framesOf(
  telling: Telling<object>,
  { leave, last = null }: { leave: () => void; last?: string | null },
): Frames {
  let isOver = false
  return {
    next: async () => {
      if (isOver) return null
      const next = await telling.next()
      if (next !== null) return next.map((each) => sseFrame(each)).join('')
      isOver = true
      return last
    },
    cancel: leave,
  }
}
