import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { LiveMessage, SessionRow, SessionsView } from '../protocol.js'
import type { SessionSort } from '../session-query.js'
import type { Source } from './data-source.js'

export const pageSize = 60
/** How long typing rests before it is searched for, and between two searches for news, in milliseconds. */
const [typingMs, newsMs] = [120, 1_000]

export interface FoundSessions {
  view: SessionsView | null
  error: unknown
  reload: () => void
  loadMore: () => void
}

/** The sessions that a query finds, as far as they were asked for, and what changes in them. */
export function useFoundSessions(
  source: Source,
  { q, sort }: { q: string; sort: SessionSort },
  onProblem: (problem: string | null) => void,
): FoundSessions {
  const [view, setView] = useState<SessionsView | null>(null)
  const [error, setError] = useState<unknown>(null)
  const asked = useRef({ q, sort, count: pageSize, round: 0 })
  const load = useCallback((): void => {
    const { q, sort, count } = asked.current
    const round = (asked.current.round += 1)
    source.sessions({ q, sort, limit: count }).then(
      (found) => {
        if (round === asked.current.round) {
          setView(found)
          setError(null)
        }
        return undefined
      },
      (trouble: unknown) => round === asked.current.round && setError(trouble),
    )
  }, [source])
  useEffect(() => {
    const isFirst = asked.current.round === 0
    asked.current = { ...asked.current, q, sort, count: pageSize }
    const timer = setTimeout(load, isFirst ? 0 : typingMs)
    return () => clearTimeout(timer)
  }, [q, sort, load])
  useEffect(() => {
    const changed = new Map<string, SessionRow>()
    let frame = 0
    let news: ReturnType<typeof setTimeout> | undefined
    let loadedAt = -Infinity
    const loadNews = (): void => {
      news ??= setTimeout(
        () => {
          news = undefined
          loadedAt = performance.now()
          load()
        },
        Math.max(50, loadedAt + newsMs - performance.now()),
      )
    }
    /** Once a frame, so that many runs cost no more than one. */
    const put = (): void => {
      frame = 0
      const now = new Map(changed)
      changed.clear()
      setView((before) => {
        if (before === null) return before
        const known = new Map(before.sessions.map((row) => [row.id, row]))
        if ([...now].some(([id, row]) => known.get(id)?.standing !== row.standing)) loadNews()
        return { ...before, sessions: before.sessions.map((row) => now.get(row.id) ?? row) }
      })
    }
    const stop = source.live(null, (message: LiveMessage) => {
      if (message.type === 'store') onProblem(message.problem)
      else if (message.type === 'gone' || message.type === 'list') loadNews()
      else if (message.type === 'session') {
        changed.set(message.row.id, message.row)
        frame ||= requestAnimationFrame(put)
      }
    })
    return () => {
      stop()
      clearTimeout(news)
      cancelAnimationFrame(frame)
    }
  }, [source, load])
  return {
    view,
    error,
    reload: load,
    loadMore: () => {
      asked.current.count += pageSize
      load()
    },
  }
}
