import type { VNode } from 'preact'
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { MomentView, RecordRow } from '../protocol.js'
import type { MomentCache } from './moment-cache.js'
import { useTimeout } from './page.js'
import { findPlayDelay } from '../timeline-layout.js'

export function showTabs(): void {
  // The breakpoint of the single-column layout, as in client.css.
  if (matchMedia('(max-width: 1020px)').matches) document.querySelector('.side')?.scrollIntoView()
}

/** Keeps the previous moment while loading. */
export function useMoment(
  moments: MomentCache,
  seq: number,
  last: number,
  round: number,
): MomentView | Error | null {
  const shown = useRef<MomentView | Error | null>(null)
  shown.current = moments.findMoment(seq) ?? shown.current
  const wanted = useRef(seq)
  wanted.current = seq
  const [, draw] = useState({})
  useEffect(() => {
    let isOver = false
    const show = (moment: MomentView | Error | null): void => {
      // A moment that was available at once is already drawn. The next key may have been pressed in the meantime.
      if (isOver || seq !== wanted.current || moment === shown.current) return
      shown.current = moment
      draw({})
    }
    moments
      .loadMoment(seq, last)
      .then(show, (error: unknown) => show(error instanceof Error ? error : new Error(String(error))))
    return () => {
      isOver = true
    }
  }, [moments, seq, last, round])
  return shown.current
}

const stepMs = 700

export function usePosition(rows: readonly RecordRow[], startSeq: number | null, isFile: boolean) {
  const last = rows.length - 1
  /** `ms` is the duration of the token's move to the place. 0 jumps. */
  const [{ place, ms }, move] = useState(() => {
    const at = startSeq === null ? -1 : rows.findIndex(({ seq }) => seq === startSeq)
    return { place: at === -1 ? last : at, ms: 0 }
  })
  const [isLive, setLive] = useState(startSeq === null && !isFile)
  const [isPlaying, setPlaying] = useState(false)
  /** The token walks to the next record and jumps to any other. */
  const walk = (to: number): void => {
    const next = to === place + 1 ? stepMs : 0
    if (to !== place || ms !== next) move({ place: to, ms: next })
  }
  const go = useLatest((to: number) => {
    walk(Math.max(0, Math.min(last, to)))
    setLive(false)
    setPlaying(false)
  })

  useEffect(() => {
    if (isLive) walk(last)
  }, [isLive, last])

  const delay = isPlaying ? findPlayDelay(rows, place) : null
  const goOn = (): void => {
    move({ place: Math.min(last, place + 1), ms: Math.min(stepMs, (delay ?? 0) - 20) })
    if (place >= last - 1) setPlaying(false)
  }
  useTimeout(delay, goOn, [isPlaying, last, place])

  const play = (): void => {
    setLive(false)
    if (!isPlaying && place >= last) move({ place: 0, ms })
    setPlaying(!isPlaying)
  }
  // A log that was replaced may be shorter.
  return { place: Math.min(place, last), ms, isPlaying, isLive, go, play, setLive }
}

/** Handles the keys of a screen, except in input fields. */
export function useKeys(actions: Readonly<Record<string, (event: KeyboardEvent) => unknown>>): void {
  const press = useLatest((event: KeyboardEvent): void => {
    const { target, key } = event
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    if (!(target instanceof HTMLElement) || document.querySelector('dialog[open]')) return
    const writes = target.matches('textarea, select, input:not([type=range]), [role=treeitem]')
    const clicks = key === ' ' && target.matches('button, a, summary')
    const scrolls = /^Arrow(Left|Right)$/.test(key) && target.scrollWidth > target.clientWidth
    const act = actions[key]
    if (writes || clicks || scrolls || !act) return
    act(event)
    event.preventDefault()
  })
  useEffect(() => {
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

export function useMedia(query: string): boolean {
  const list = useMemo(() => matchMedia(query), [query])
  const [isMatch, setMatch] = useState(list.matches)
  useEffect(() => {
    const listen = (): void => setMatch(list.matches)
    list.addEventListener('change', listen)
    return () => list.removeEventListener('change', listen)
  }, [list])
  return isMatch
}

export function useNow(isOn: boolean): number | undefined {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (!isOn) return undefined
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [isOn])
  return isOn ? now : undefined
}

/** Announces the current record to screen readers after a short delay. */
export function Announcer({ text }: { text: string }) {
  const [announced, announce] = useState('')
  useTimeout(400, () => announce(text), [text])
  return (
    <div class="sr" role="status" aria-live="polite">
      {announced}
    </div>
  )
}

/** Renders again only when a prop changes. */
export function memoize<Props extends object>(render: (props: Props) => VNode): (props: Props) => VNode {
  return function Memoized(props) {
    return useMemo(() => render(props), Object.values(props))
  }
}

/** A function with a stable identity that calls the latest version. */
export function useLatest<Input extends unknown[], Output>(call: (...input: Input) => Output): typeof call {
  const latest = useRef(call)
  latest.current = call
  return useCallback((...input: Input) => latest.current(...input), [])
}
