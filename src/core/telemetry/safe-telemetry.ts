import type { EmittedEvent } from '../../../machines/agent/announcements.js'
import type {
  TelemetryRunInfo,
  TelemetryStepInfo,
  RunTelemetry,
  Telemetry,
  TelemetryParent,
} from './telemetry.js'
import type { AnyActorRef } from 'xstate'
import type { AgentContext } from '../../../machines/agent/context.js'
import { describeError, configError } from '../base/errors.js'
import { parseJsonOr } from '../base/json.js'

export type SafeTelemetry = ReturnType<typeof makeSafe>

/** The telemetry of a run. Work is executed exactly once and its result is returned, even if the telemetry throws. */
function makeSafe(telemetry: Telemetry, run: RunTelemetry, report: (thrown: unknown) => void) {
  let hasThrown = false

  /** Reports the first error of the telemetry, but none of the work. */
  const attempt = <T>(ask: () => T, isOfWork: (thrown: unknown) => boolean = () => false): T | null => {
    try {
      return ask()
    } catch (thrown) {
      if (hasThrown || isOfWork(thrown)) return null
      hasThrown = true
      report(thrown)
      return null
    }
  }

  return {
    run,
    link: (): string | null =>
      attempt(() => {
        const link: unknown = run.link()
        return typeof link === 'string' && link.length <= getMaxLink(run) ? link : null
      }),
    around<T>(step: TelemetryStepInfo, work: () => T): T {
      let done: { value: T } | { error: unknown } | undefined
      const once = (): T => {
        try {
          done ??= { value: work() }
        } catch (error) {
          done = { error }
        }
        if ('error' in done) throw done.error
        return done.value
      }
      attempt(
        () => run.around(step, once),
        (thrown) => done !== undefined && 'error' in done && done.error === thrown,
      )
      return once()
    },
    event: (announcement: EmittedEvent): void => void attempt(() => run.event(announcement)),
    end: (): void => void attempt(() => run.end()),
    /** Describes the run and the call as the parent of a sub-agent. */
    describeParent: (callId: string, name: string, isWithheld: boolean): TelemetryParent => ({
      telemetry,
      run,
      callId,
      name,
      isUncleared: isWithheld,
    }),
  }
}

/** Maximum length of a link, which is stored in every log. A `traceparent` has 55 characters. */
const maxLink = 200

/** The maximum length of a run's link. Combined telemetries have a list of links, as JSON. */
const getMaxLink = ({ parts }: RunTelemetry): number =>
  parts === undefined ? maxLink : (maxLink + 10) * (parts.length + 1)

export interface MeasuringOptions {
  readonly telemetry: Telemetry | undefined
  readonly model: TelemetryRunInfo['model']
}

interface MeasuredStart {
  runId: string
  input: { sessionId: string } | null
  link: string | null | undefined
  above: TelemetryParent | undefined
  self: unknown
  emit: (announcement: EmittedEvent) => void
}

/** A sub-agent uses the telemetry of its parent run unless it has its own. */
export function measureRun(
  { telemetry: own, model }: MeasuringOptions,
  { runId, input, link = null, above, self, emit }: MeasuredStart,
): SafeTelemetry | undefined {
  const telemetry = own ?? above?.telemetry
  if (telemetry === undefined) return undefined
  const context = (): AgentContext =>
    ((self as AnyActorRef).getSnapshot() as { context: AgentContext }).context
  const { sessionId } = input ?? context()
  const isResumed = input === null
  const run: TelemetryRunInfo = { runId, sessionId, model, isResumed, link, parent: above ?? null, context }
  const report = (thrown: unknown): void => {
    const message = `The telemetry threw: ${describeError(thrown)}`
    emit({ type: 'warning', code: 'telemetry_error', message })
  }
  try {
    return makeSafe(telemetry, telemetry.begin(run), report)
  } catch (thrown) {
    report(thrown)
    return undefined
  }
}

/** Undefined for no telemetry or an empty list. @throws {ConfigError} `invalid_config` */
export function checkTelemetry(option: Telemetry | readonly Telemetry[] | undefined): Telemetry | undefined {
  const all: readonly Telemetry[] = option === undefined ? [] : [option].flat()
  const wrong = all.findIndex((telemetry) => typeof telemetry?.begin !== 'function')
  if (wrong >= 0) {
    const key = Array.isArray(option) ? `telemetry[${wrong}]` : 'telemetry'
    const message = `${key} must be the return value of otel() from statewright/otel, or an object with begin(run).`
    throw configError(message, key)
  }
  // If one throws, the others still work.
  return all.length > 1 ? { begin: (run) => beginAll(all, run) } : all[0]
}

function beginAll(all: readonly Telemetry[], info: TelemetryRunInfo): RunTelemetry {
  const links = splitLinks(info.link, all.length)
  let noted: { error: unknown } | null = null
  const note = (error: unknown): void => {
    noted ??= { error }
  }
  const runs = all.map((telemetry, i) => {
    try {
      return makeSafe(telemetry, telemetry.begin({ ...info, link: links[i] ?? null }), note)
    } catch (error) {
      note(error)
      return null
    }
  })
  const begun = runs.filter((run) => run !== null)
  /** Asks all, and then throws the first error of those that threw. */
  const ask = <T>(work: () => T): T => {
    const result = work()
    const thrown = noted
    noted = null
    if (thrown !== null) throw thrown.error
    return result
  }
  return {
    parts: begun.map(({ run }) => run),
    link() {
      const parts = ask(() => runs.map((run) => run?.link() ?? null))
      return parts.every((link) => link === null) ? null : JSON.stringify(parts)
    },
    around: <T>(step: TelemetryStepInfo, work: () => T): T =>
      ask(begun.reduceRight((inner, run) => () => run.around(step, inner), work)),
    event: (announcement) => ask(() => begun.forEach((run) => run.event(announcement))),
    end: () => ask(() => begun.forEach((run) => run.end())),
  }
}

/** Splits the links of several telemetries. A link from an earlier process with only one telemetry is passed to all. */
function splitLinks(link: string | null, count: number): readonly (string | null)[] {
  const links = parseJsonOr(link ?? '', null)
  if (!Array.isArray(links)) return Array.from({ length: count }, () => link)
  return links.map((one: unknown) => (typeof one === 'string' ? one : null)).slice(0, count)
}
