import { type Call, type Json, type Run, begin, isEnd } from '../../../spec/run.js'
import { Broken, type Details } from './walk-table.js'

/** The run that a snapshot has. */
export function readRun({ value, context }: Json, details?: Details): Run {
  let place = value
  while (typeof place === 'object') place = Object.values(place)[0]
  const caps: Record<string, string> = { token_budget: 'budget', cost_limit: 'budget' }
  for (const cap of ['max_steps', 'max_tool_calls']) caps[cap] = cap
  return {
    ...Object.fromEntries(Object.keys(begin({})).map((key) => [key, context[key]])),
    setup: context,
    place,
    stop: context.verdict?.onHalt ?? (isEnd(place) ? null : (caps[context.reason] ?? null)),
    recalled: context.retrieved !== null,
    resends: context.resends ?? 0,
    // Logs of earlier versions know of none.
    plan: context.plan ?? null,
    steering: context.steering.length,
    loaded: context.loaded ?? [],
    calls: context.calls.map(readCall),
    details: details?.read(context),
  } as Run
}

const readCall = ({ id, name, needs, questions, result, started, ...marks }: Json): Call => ({
  id,
  name,
  needs,
  questions: questions ?? [],
  started: started === true,
  done: result !== undefined,
  failed: result !== undefined && result.status !== 'ok' && !marks.unloaded,
  unchecked: marks.unchecked === true,
  unscreened: marks.unscreened === true,
  unloaded: marks.unloaded === true,
  kept: marks.handle !== undefined,
  perhaps: false,
})

/** Throws where a snapshot is not of the run that its log has led to. */
export function checkSnapshot(run: Run, seen: Run, status: string, details?: Details): Run[] {
  const [due, is] = [sketch(run, seen, details), sketch(seen, seen, details)]
  // A guard knows why it has stopped the run.
  if (run.reason === undefined || (run.reason === null && run.stop !== null)) is['reason'] = due['reason']
  // The rules alone know nothing of the sleep of sub-agents.
  if (!details && run.reason === 'paused' && seen.reason === 'sleeping') is['reason'] = due['reason']
  if (run.lastBatchFailed === 'perhaps') is['lastBatchFailed'] = run.lastBatchFailed
  const law = 'snapshot: A snapshot is what its log leads to: its place, counters, totals and calls.'
  for (const key of Object.keys(due)) {
    const [one, other] = [JSON.stringify(is[key]), JSON.stringify(due[key])]
    if (one !== other) throw new Broken(law, `Its ${key} is ${one}, and the log leads to ${other}.`)
  }
  if ((status === 'done') !== isEnd(run.place)) throw new Broken(law, `It is ${status} in ${run.place}.`)
  return [seen]
}

/** What is compared. What is told, or looked up, before the next request has no meaning after the end. */
function sketch(run: Run, seen: Run, details?: Details): Record<string, unknown> {
  const { setup: _, details: __, ...compared } = run
  const calls = run.calls.map(({ id, done, perhaps, unscreened, needs, started, unchecked, kept }, i) => {
    // Whether a guard has refused a call is known now.
    const isDone = done || (perhaps && seen.calls[i]?.done === true)
    return isDone ? { id, isDone, unscreened } : { id, isDone, unscreened, needs, started, unchecked, kept }
  })
  const over = isEnd(run.place) && { steering: 0, recalled: false }
  return { ...compared, calls, ...over, ...details?.sketch(run) }
}
