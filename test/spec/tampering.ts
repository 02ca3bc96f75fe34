import type { LogEntry } from '../../src/testing/reference-model/judge-log.js'

type Fields = Record<string, unknown>

/** A change of one fact in a log, applied in every possible place. */
export interface Tampering {
  name: string
  /** The tampered logs. Empty when the log has no such fact. */
  apply: (log: readonly LogEntry[]) => LogEntry[][]
  /**
   * Whether the change is visible only in a snapshot before the run continues. In a cut-short batch, for example, no later record
   * depends on the results of its calls.
   */
  needsSnapshot?: true
}

const eventOf = (entry: LogEntry): Fields => (entry['event'] ?? {}) as Fields
const typeOf = (entry: LogEntry): string =>
  typeof eventOf(entry)['type'] === 'string' ? (eventOf(entry)['type'] as string) : ''
const contextOf = (entry: LogEntry): Fields =>
  ((entry['state'] as Fields | undefined)?.['context'] ?? {}) as Fields
const renumber = (log: readonly LogEntry[]): LogEntry[] => log.map((entry, i) => ({ ...entry, seq: i + 1 }))
const isAnswer = (entry: LogEntry): boolean => /done\.actor\.(model|conclusion)$/.test(typeOf(entry))
const isSnapshot = ({ type }: LogEntry): boolean => type === 'snapshot'
const responseOf = (entry: LogEntry): Fields =>
  ((eventOf(entry)['output'] as Fields)['response'] ?? {}) as Fields
const callsOf = (entry: LogEntry): Fields[] => (responseOf(entry)['toolCalls'] ?? []) as Fields[]

/** Replaces each entry of a kind with one or more entries. */
function replace(
  name: string,
  isMeant: (entry: LogEntry) => boolean,
  change: (entry: LogEntry, log: readonly LogEntry[], at: number) => LogEntry[] | null,
): Tampering {
  return {
    name,
    apply: (log) =>
      log.flatMap((entry, i) => {
        const changed = isMeant(entry) ? change(structuredClone(entry), log, i) : null
        return changed ? [renumber(log.toSpliced(i, 1, ...changed))] : []
      }),
  }
}

/** An in-place change. */
const edit = (
  name: string,
  isMeant: (entry: LogEntry) => boolean,
  change: (entry: LogEntry) => boolean | void,
): Tampering => replace(name, isMeant, (entry) => (change(entry) === false ? null : [entry]))

/** A fact in the snapshots. */
const editState = (name: string, change: (context: Fields) => boolean | void): Tampering =>
  edit(`a snapshot ${name}`, isSnapshot, (entry) => change(contextOf(entry)))

const addTo = (fields: Fields, key: string, count = 1): void => {
  fields[key] = Number(fields[key] ?? 0) + count
}
const inSnapshots = (tampering: Tampering): Tampering => ({ ...tampering, needsSnapshot: true })
const is = (type: string) => (entry: LogEntry) => typeOf(entry) === type
const isRequestFailure = is('xstate.error.actor.model')
const isWaitForBudget = (entry: LogEntry): boolean => {
  const { code, wakeAt } = (eventOf(entry)['error'] ?? {}) as Fields
  return isRequestFailure(entry) && code === 'shared_budget' && wakeAt !== undefined
}

/** Facts that a log contains in two places, or that only one state allows. */
export const tamperings: readonly Tampering[] = [
  replace('an answer of the model is left out', isAnswer, () => []),
  replace('an answer of the model comes twice', isAnswer, (entry) => [entry, entry]),
  edit('an answer has used more', isAnswer, (entry) =>
    addTo(responseOf(entry)['usage'] as Fields, 'inputTokens'),
  ),
  edit('an answer has used less than nothing', isAnswer, (entry) => {
    ;(responseOf(entry)['usage'] as Fields)['outputTokens'] = -1
  }),
  inSnapshots(
    edit('an answer was cut', isAnswer, (entry) => {
      const { finishReason } = responseOf(entry)
      if (finishReason !== 'stop' && finishReason !== 'tool_calls') return false
      responseOf(entry)['finishReason'] = 'length'
      return true
    }),
  ),
  edit('a call of an answer has another id', isAnswer, (entry) => {
    const call = callsOf(entry)[0]
    if (!call) return false
    call['id'] = 'another'
    return true
  }),
  edit('two calls of an answer have one id', isAnswer, (entry) => {
    const [one, other] = callsOf(entry)
    if (!one || !other) return false
    other['id'] = one['id']
    return true
  }),
  replace('a result of a call comes twice', is('TOOL_RESULT'), (entry) => [entry, entry]),
  edit('a result is of another call', is('TOOL_RESULT'), (entry) => {
    eventOf(entry)['callId'] = 'another'
  }),
  inSnapshots(replace('a result is left out', is('TOOL_RESULT'), () => [])),
  inSnapshots(
    replace('an approval is left out', is('APPROVE'), (entry, log) => {
      // The answer to a sub-agent is in its own log. A question that expires afterwards may also have had no answer.
      const { callId } = eventOf(entry)
      const isOwn = log.some((one) => isAnswer(one) && callsOf(one).some(({ id }) => id === callId))
      return !isOwn && log.some(is('APPROVAL_EXPIRED')) ? null : []
    }),
  ),
  replace('an approval comes twice', is('APPROVE'), (entry) => [entry, entry]),
  edit('an approval is of another call', is('APPROVE'), (entry) => {
    eventOf(entry)['callId'] = 'another'
  }),
  inSnapshots(
    replace('an approval was a rejection', is('APPROVE'), (entry, log) => {
      // The sub-agent's log contains its handling of the answer.
      const { callId } = eventOf(entry)
      if (!log.some((one) => isAnswer(one) && callsOf(one).some(({ id }) => id === callId))) return null
      Object.assign(eventOf(entry), { type: 'REJECT', why: 'No.', withheld: true })
      return [entry]
    }),
  ),
  replace('an output of the client comes twice', is('TOOL_OUTPUT'), (entry) => [entry, entry]),
  replace('a reply is left out', is('REPLY'), () => []),
  replace('a cancel is left out', is('CANCEL'), () => []),
  edit('a cancel was a failure of the store', is('CANCEL'), (entry) => {
    eventOf(entry)['type'] = 'STORE_FAILED'
  }),
  replace(
    'the failure of a request is left out',
    (entry) => isRequestFailure(entry) && !isWaitForBudget(entry),
    () => [],
  ),
  // It does not count as an attempt, and logs do not record the start of a request. Only the resulting idle state shows it.
  inSnapshots(replace('a wait for a shared budget is left out', isWaitForBudget, () => [])),
  edit('a failure is of another kind', isRequestFailure, (entry) => {
    const error = eventOf(entry)['error'] as Fields | undefined
    const { kind, code, usage, refusal } = error ?? {}
    // The error code decides for a request that a budget rejects. The rejection decides for a request with rejected content.
    if (
      !error ||
      usage ||
      refusal ||
      /^(token|shared)_budget$/.test(String(code)) ||
      kind === 'context_overflow'
    )
      return false
    error['kind'] = 'context_overflow'
    return true
  }),
  edit('a deadline passes before its time', is('DEADLINE'), (entry) => {
    // A path has no passage of time, so the remaining time depends only on the start.
    Object.assign(entry, { at: entry.at - 1_000_000 })
    eventOf(entry)['now'] = entry.at
  }),
  edit(
    'an event is of no kind',
    (entry) => entry.type === 'event',
    (entry) => {
      eventOf(entry)['type'] = 'UNHEARD_OF'
    },
  ),
  edit(
    'an event is of another time than its record',
    (entry) => entry.type === 'event',
    (entry) => {
      eventOf(entry)['now'] = entry.at + 1
    },
  ),
  edit(
    'time runs backwards',
    (entry) => entry.type === 'event',
    (entry) => {
      Object.assign(entry, { at: entry.at - 1_000_000 })
      eventOf(entry)['now'] = entry.at
    },
  ),
  edit(
    'what is withheld is not marked',
    (entry) => eventOf(entry)['withheld'] === true,
    (entry) => {
      delete eventOf(entry)['withheld']
    },
  ),
  edit(
    'a record is of no kind',
    () => true,
    (entry) => {
      Object.assign(entry, { type: 'unheard_of' })
    },
  ),
  replace(
    'the log is opened twice',
    (entry) => entry.type === 'opened',
    (entry) => [entry, entry],
  ),
  replace(
    'the run starts twice',
    (entry) => entry.type === 'start',
    (entry) => [entry, entry],
  ),
  replace(
    'the start is left out',
    (entry) => entry.type === 'start',
    () => [],
  ),
  edit('a snapshot has ended, or has not', isSnapshot, (entry) => {
    const state = entry['state'] as Fields
    state['status'] = state['status'] === 'done' ? 'active' : 'done'
  }),
  edit('a snapshot stands elsewhere', isSnapshot, (entry) => {
    const state = entry['state'] as Fields
    state['value'] = state['value'] === 'COMPLETED' ? 'CANCELLED' : 'COMPLETED'
  }),
  edit('a snapshot is of more runs', isSnapshot, (entry) => addTo(entry as unknown as Fields, 'runs')),
  edit('a snapshot has taken a later message', isSnapshot, (entry) =>
    addTo(entry as unknown as Fields, 'inbox'),
  ),
  ...[
    'steps',
    'attempt',
    'rateLimits',
    'recoveries',
    'reprompts',
    'emptyRetries',
    'outputRepairs',
    'batchNumber',
    'deadline',
  ].map((key) => editState(`counts more: ${key}`, (context) => addTo(context, key))),
  // The next record alone shows whether a resume after a halt has one more message. There may be no next record.
  editState('counts more: numbered', (context) => addTo(context, 'lastMessageNumber', 2)),
  editState('pauses, or does not', (context) => {
    context['pausing'] = context['pausing'] !== true
  }),
  editState('has spent more', (context) => addTo((context['usage'] as { run: Fields }).run, 'outputTokens')),
  editState('has spent less in the session', (context) => {
    const { session } = context['usage'] as { session: Fields }
    session['inputTokens'] = Number(session['inputTokens']) - 1
  }),
  editState('has a limit of its own', (context) => {
    const config = context['config'] as { limits: Fields }
    config.limits['maxSteps'] = 1_000
  }),
  editState('trusts a tool more', (context) => {
    const tool = Object.values((context['tools'] ?? {}) as Record<string, Fields>).find(
      ({ idempotent }) => !idempotent,
    )
    if (!tool) return false
    tool['idempotent'] = true
    return true
  }),
  editState('has a shield less', (context) => {
    const features = context['features'] as Fields
    const name = ['inputShields', 'outputShields', 'callShields', 'resultShields'].find(
      (one) => features[one],
    )
    if (!name) return false
    features[name] = false
    return true
  }),
  editState('has a call less', (context) => {
    const calls = context['calls'] as unknown[]
    return calls.pop() !== undefined
  }),
  editState('has the result of a call that has none', (context) => {
    const call = (context['calls'] as Fields[]).find(({ result }) => result === undefined)
    if (call) call['result'] = { status: 'ok', content: 'Done.', durationMs: 0 }
    return call !== undefined
  }),
  editState('lacks the result of a call', (context) => {
    // A batch that is still running may lack a result.
    const isAtWork = (context['calls'] as unknown[]).length > 0 && context['state'] === 'WAITING_FOR_TOOL'
    const messages = isAtWork ? [] : (context['messages'] as Fields[])
    const at = messages.findIndex(({ role }) => role === 'tool')
    return at >= 0 && messages.splice(at, 1).length > 0
  }),
  editState('has a message twice', (context) => {
    const messages = context['messages'] as Fields[]
    if (messages.length === 0) return false
    messages.push(structuredClone(messages.at(-1) as Fields))
    return true
  }),
  editState('is of another run', (context) => {
    context['runId'] = 'another'
  }),
]
