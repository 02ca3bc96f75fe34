import type { ComponentChildren, ComponentType } from 'preact'
import { useCallback, useEffect, useState } from 'preact/hooks'
import { SourceError } from './data-source.js'
import { formatError } from '../format.js'

/**
 * Loads a value, and loads it again when `key` or `version` changes or `reload` is called. Only a new key drops the
 * old value.
 */
export function useLoaded<T>(key: string, load: () => Promise<T>, version = '') {
  const [state, setState] = useState<{ key: string; value: T | null; error: unknown }>({
    key,
    value: null,
    error: null,
  })
  const [round, setRound] = useState(0)
  useEffect(() => {
    let isOver = false
    load().then(
      (value) => isOver || setState({ key, value, error: null }),
      (error: unknown) =>
        isOver || setState((before) => ({ key, value: before.key === key ? before.value : null, error })),
    )
    return () => {
      isOver = true
    }
    // `load` is a new function on each render. `key` identifies it.
  }, [key, version, round])
  const set = useCallback(
    (change: (value: T) => T) =>
      setState((before) => (before.value === null ? before : { ...before, value: change(before.value) })),
    [],
  )
  const isCurrent = state.key === key
  return {
    value: isCurrent ? state.value : null,
    error: isCurrent ? state.error : null,
    reload: useCallback(() => setRound((before) => before + 1), []),
    set,
  }
}

interface TroubleProps {
  error: unknown
  onRetry?: () => void
  isPart?: boolean
  hasLink?: boolean
}

export function Trouble({ error, onRetry, isPart = false, hasLink = false }: TroubleProps) {
  const code = error instanceof SourceError ? error.code : ''
  const title = titles[code] ?? 'Cannot be shown'
  const alert = (
    <div class="trouble" role="alert">
      {isPart ? <h2>{title}</h2> : <h1>{title}</h1>}
      <p>{formatError(error)}</p>
      <div class="buttons">
        {onRetry && <button onClick={onRetry}>Try again</button>}
        {hasLink && <AllSessions />}
      </div>
    </div>
  )
  return isPart ? alert : <main>{alert}</main>
}

export const AllSessions = () => (
  <a class="button" href="#/">
    All sessions
  </a>
)

const titles: Record<string, string> = {
  unreachable: 'Cannot reach the studio',
  unknown_session: 'Session not found',
  corrupt_log: 'This session is damaged',
  newer_log: 'This session was written by a newer version',
  stale_answer: 'Already answered',
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      {what} …
    </p>
  )
}

export async function loadPart<Part>(load: () => Promise<Part>): Promise<Part> {
  try {
    return await load()
  } catch {
    throw new Error(
      'This part of the page cannot be loaded. Check that the studio is running, then reload the page.',
    )
  }
}

export function createLazyScreen<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null
  return function LazyScreen(props: Props) {
    const { value, error, reload } = useLoaded('', async () => (loaded ??= await loadPart(load)))
    const Screen = loaded ?? value
    if (error !== null) return <Trouble error={error} onRetry={reload} />
    return Screen === null ? <Loading what="Loading" /> : <Screen {...props} />
  }
}

/** Runs actions, and keeps the message of the last one if it failed. */
export function useAttempt() {
  const [trouble, setTrouble] = useState('')
  const [isBusy, setBusy] = useState(false)
  const attempt = async (act: () => Promise<unknown>): Promise<void> => {
    setBusy(true)
    setTrouble('')
    try {
      await act()
    } catch (error) {
      setTrouble(formatError(error))
    } finally {
      setBusy(false)
    }
  }
  return { trouble, isBusy, attempt, forgive: () => setTrouble('') }
}

/** A constant, because a new function would scroll on every render. */
const scrollIntoSight = (line: HTMLElement | null): void => line?.scrollIntoView({ block: 'nearest' })

export function Refusal({ text }: { text: string }) {
  return text === '' ? null : (
    <span class="refusal" role="alert" ref={scrollIntoSight}>
      {text}
    </span>
  )
}

interface CheckProps {
  isOn: boolean
  onChange: (isOn: boolean) => void
  children: ComponentChildren
}

export function Check({ isOn, onChange, children }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.currentTarget.checked)} />
      {children}
    </label>
  )
}
