import {
  type Call,
  type Json,
  type Moment,
  type Run,
  due,
  findAsked,
  findOwn,
  isEnough,
  isGrantOver,
  isPast,
  isWatched,
  limitOf,
  listLate,
  spreadGrants,
  pollOf,
  termsOf,
  turn,
} from './run.js'

type Change = (run: Run, moment: Moment, of: string) => Partial<Run>
function change({ calls }: Run, isMeant: Json, patch: Partial<Call>): { calls: Call[] } {
  return { calls: calls.map((call) => (isMeant(call) ? { ...call, ...patch } : call)) }
}
const refusal = { done: true, failed: true, perhaps: false, unchecked: false }
const fresh = {
  started: false,
  done: false,
  failed: false,
  unscreened: false,
  perhaps: false,
  approved: false,
  votes: [],
  questions: [],
  expiresAt: null,
  urgent: false,
  bound: false,
  grant: null,
}
const decides = (decisions: Json, what: string) =>
  decisions?.some(({ decision, shadow }: Json) => !shadow && decision === what) === true
const mayRepeat = ({ readOnly, idempotent }: Json) => readOnly || idempotent
const ends: Json = { truncated: 'max_tokens', filtered: 'content_filter', refusal: 'refusal' }
const isHalt = ({ action }: Json) => action === 'halt'
const cuts = ['length', 'max_tokens', 'model_length', 'max_output_tokens']
const filters =
  /^(content_filter(ed)?|safety|recitation|blocklist|prohibited_content|spii|guardrail_intervened|sensitive)$/

/** Classifies an answer. Only filter and truncation reasons are trusted, because such calls do not run. */
function classify({ text, refusal: refused, toolCalls, finishReason }: Json): string {
  const why = finishReason?.toLowerCase()
  if (filters.test(why)) return 'filtered'
  if (refused?.trim() || why === 'refusal') return 'refusal'
  if (cuts.includes(why)) return toolCalls.length > 0 ? 'truncatedCalls' : 'truncated'
  return toolCalls.length > 0 ? 'calls' : text.trim() ? 'answer' : 'empty'
}

/** The time of a question starts when it is first asked, or with an approval before that. */
const timed = (call: Call, now: number): Call =>
  call.expiresAt === null && call.limit.ms > 0 ? { ...call, expiresAt: now + call.limit.ms } : call

/** Whoever writes words of a run is a requester. */
const author = ({ setup }: Run, { by }: Json) =>
  by && { setup: { ...setup, requesters: [...(setup.requesters ?? []), by] } }

/** Grants that have ended are dropped, unless a call has one. */
function give({ grants, calls, setup }: Run, grant: Json, now: number): { grants: Json[] } {
  const isKept = (one: Json): boolean =>
    one.id !== grant.id && (!isGrantOver(one, now) || calls.some((call) => call.grant === one.id))
  return { grants: [...grants.filter(isKept), { ...grant, speaker: setup.speaker }] }
}
/** Calls that did not start ask again, and their uses do not count. */
function ungrant(run: Run, ids: string[], patch: Partial<Call> = {}): Run {
  const affected = run.calls.filter(({ id, grant, done }) => ids.includes(id) && grant !== null && !done)
  const back = (one: Json): number => affected.filter(({ grant }) => grant === one.id).length
  return {
    ...run,
    grants: run.grants.map((one) => ('uses' in one ? { ...one, uses: one.uses + back(one) } : one)),
    calls: run.calls.map((call) =>
      affected.includes(call)
        ? { ...call, started: false, approved: false, needs: 'approval', grant: null, ...patch }
        : call,
    ),
  }
}

/** The actions of the table. */
export const changes: Record<string, Change> = {
  because: ({ stop, pausing }, _moment, reason) => {
    if (reason === 'paused' && typeof pausing === 'string') return { reason: pausing }
    return { reason: (reason === 'stop' ? stop : reason) || undefined }
  },
  stop: (_run, _moment, stop) => ({ stop: stop || null }),
  again: (run, _moment, counter) => ({ calls: [], [counter]: run[counter as 'steps'] + 1 }),
  close: () => ({ calls: [] }),
  takeResult: () => ({ calls: [], response: 'answer' }),
  end: ({ response }) => ({ reason: ends[response ?? ''] ?? 'end_turn' }),
  recall: () => ({ recalled: true }),
  plan: (_run, { event: { output } }) => ({ plan: output }),
  pause: ({ pausing }) => ({ pausing: pausing || true }),
  listen: (run, { event }) => ({ ...turn, ...author(run, event) }),
  steer: (run, { event }) => ({ steering: run.steering + 1, ...author(run, event) }),
  tellSteering: () => ({ steering: 0 }),
  /** An answer completes a step. The next attempt is the first of a new step. */
  takeAnswer: (run, { event: { output } }) => {
    const unchecked = run.setup.features.callShields
    const calls = output.response.toolCalls.map(
      ({ id, function: { name, arguments: args }, hosted }: Json, i: number) => {
        const unloaded = !hosted && run.setup.tools[name]?.deferred === true && !run.loaded.includes(name)
        const { needs, decisions, client = false } = output.calls[i]
        const created = {
          ...fresh,
          id,
          name,
          args,
          bound: Boolean(hosted),
          hosted: Boolean(hosted),
          needs,
          unchecked,
          unloaded,
          client,
          decided: Boolean(decisions),
          hasHandle: false,
          terms: termsOf(run.setup, decisions),
          limit: limitOf(run.setup, decisions),
        }
        return decides(decisions, 'deny') ? { ...created, ...refusal } : created
      },
    )
    return {
      steps: run.steps + 1,
      attempt: 1,
      rateLimits: 0,
      resends: 0,
      response: classify(output.response),
      calls,
    }
  },
  countAttempt: ({ attempt, rateLimits }, { event: { error } }) => {
    return { attempt: attempt + 1, rateLimits: rateLimits + (error.kind === 'rate_limit' ? 1 : 0) }
  },
  /** A request without the refused content is a different request. */
  countResend: ({ attempt, resends }) => ({ attempt: attempt + 1, resends: resends + 1 }),
  load: ({ loaded }, { event }) => ({ loaded: [...new Set([...loaded, ...event.names])] }),
  start: (run, { now }) => change(run, (call: Call) => due['runnable']?.(call, now), { started: true }),
  ask: (run, { now }) => ({
    calls: run.calls.map((call) => (call.needs === 'approval' && !call.done ? timed(call, now) : call)),
  }),
  expire: ({ calls, pausing }, { now }) => {
    const late = calls.flatMap((call) => listLate(call, now))
    const pauses = late.some(({ limit, onExpiry }) => limit?.end === 1 || onExpiry === 'pause')
    const end = (call: Call): Call => {
      const open = listLate(call, now)
      if (open.length === 0) return call
      if (open.includes(call)) return { ...call, ...refusal }
      const questions = call.questions.map((one) =>
        open.includes(one) ? { ...one, answer: 'expired' } : one,
      )
      return { ...call, questions, needs: questions.every((one) => one.answer) ? 'nobody' : 'child' }
    }
    return { calls: calls.map(end), pausing: pauses ? 'approval_expired' : pausing }
  },
  useGrants: (run, { now }) => {
    const { covered, grants } = spreadGrants(run, now)
    const start = (call: Call): Call => {
      const grant = covered.get(call.id)
      return grant === undefined ? call : { ...call, needs: 'nobody', approved: true, votes: [], grant }
    }
    return { grants, calls: run.calls.map(start) }
  },
  refuseGranted: (run, { now }) => {
    const { covered } = spreadGrants(run, now)
    return change(run, ({ id }: Call) => covered.has(id), refusal)
  },
  takeGrant: (run, { event: { tool, grant, by }, now }) =>
    give(run, { ...grant, tool, givers: [{ by }] }, now),
  dropGrant: ({ grants }, { event }) => ({ grants: grants.filter(({ id }) => id !== event.grant) }),
  takeBack: (run, { event }) => {
    const [call, question, votes] = findOwn(run, event)
    if (!call) return {}
    const questions = call.questions.map((one) => (one === question ? { ...one, approvals: votes } : one))
    const open = { needs: 'approval', approved: false, votes, urgent: false, bound: true }
    return change(run, (one: Call) => one === call, question ? { questions } : open)
  },
  endGrant: (run, { event: { callId } }) => ungrant(run, [callId], { bound: true }),
  keep: (run, { event: e }) =>
    change(run, (it: Call) => it.id === e.callId && 'handle' in e, { hasHandle: true }),
  refuse: (run, _moment, what) => change(run, due[what], refusal),
  noteFailures: ({ calls }) => {
    const found = calls.map(({ failed, unloaded }) => !unloaded && failed)
    return { lastBatchFailed: found.includes(true) || (found.includes('perhaps') && 'perhaps') }
  },
  /** Plans, skills and caps refuse calls. Guards refuse calls seen in earlier answers of the turn or in this one. */
  doubt: (run) => {
    const hasSeen = run.steps > 1 || new Set(run.calls.map(({ name }) => name)).size < run.calls.length
    const { maxToolCalls: most, maxToolCallsPerResponse: each } = run.setup.config.limits
    const bars = run.plan?.tools || Object.values<Json>(run.setup.tools).some((t) => t.skill || t.handoff)
    const isMeant = ({ name, unloaded }: Call) =>
      !unloaded && ((hasSeen && isWatched(run)) || (most ?? each ?? run.setup.tools[name]?.maxCalls))
    return change(run, bars ? Boolean : isMeant, { perhaps: true })
  },
  mayRefuse: (run) => change(run, due['undecided'], { perhaps: true }),
  /** Shields may refuse a call, which logs do not contain. Policies decide changed arguments again. */
  clearCalls: (run, { event: { output } }) => {
    const clear = (call: Call): Call => {
      const { decisions, action, content } = output.find?.(({ callId }: Json) => callId === call.id) ?? {}
      const terms = decisions ? termsOf(run.setup, decisions) : call.terms
      const isApproved = call.approved && isEnough(run.setup, terms, call.votes)
      const asks = decides(decisions, 'ask') && !isApproved && call.needs !== 'approval'
      const changes = {
        terms,
        limit: decisions ? limitOf(run.setup, decisions) : call.limit,
        expiresAt: asks ? null : call.expiresAt,
        needs: asks ? 'approval' : call.needs,
        client: call.client || (asks && call.needs === 'client'),
        args: action === 'redact' ? content : call.args,
      }
      const isDenied = decides(decisions, 'deny') || (call.decided && call.approved && !decisions)
      return {
        ...call,
        perhaps: true,
        unchecked: false,
        ...changes,
        ...(isDenied && { ...refusal, perhaps: true }),
      }
    }
    return { calls: run.calls.map((call) => (due['unchecked']?.(call) ? clear(call) : call)) }
  },
  clearResults: (run) => change(run, due['unscreened'], { failed: 'perhaps', unscreened: false }),
  stopAsFound: (_run, { event: { output } }) => ({ stop: output.findings.find(isHalt).onHalt }),
  takeReport: (run, { event: { type, callId, result, questions } }) => {
    const known = run.calls.find(({ id }) => id === callId)?.questions ?? []
    const isSame = (a: Json, b: Json): boolean =>
      ['callId', 'fingerprint', 'messageId'].every((key) => a[key] === b[key])
    const votes = (question: Json): Json => {
      const former = known.find((one) => !one.answer && isSame(one, question))
      return former?.approvals ? { approvals: former.approvals } : {}
    }
    const open = (questions ?? []).map((one: Json) => ({ ...one, ...votes(one) }))
    const rest = { started: false, needs: 'child', questions: open, expiresAt: null, urgent: false }
    const unloaded = run.calls.some((call) => call.id === callId && call.unloaded)
    const failed = result?.status !== 'ok' && !unloaded
    const end = { done: true, failed, unscreened: run.setup.features.resultShields }
    const patch = { perhaps: false, ...(type === 'CHILD_WAITING' ? rest : end) }
    return change(run, ({ id }: Call) => id === callId, patch)
  },
  takeReply: (run, { now, event: { type, isError, withheld = false, ...event } }) => {
    const [target, question] = findAsked(run, { type, ...event })
    const { resultShields, callShields } = run.setup.features
    const answer = (call: Call): Partial<Call> => {
      const { terms, votes } = pollOf(call, question)
      const cast = event.arguments === undefined ? [...votes, event] : [event]
      if (type === 'APPROVE' && !isEnough(run.setup, terms, cast))
        return question
          ? { questions: call.questions.map((one) => (one === question ? { ...one, approvals: cast } : one)) }
          : { votes: cast, expiresAt: timed(call, now).expiresAt }
      if (question) {
        const questions = call.questions.map((one) => (one === question ? { ...one, answer: type } : one))
        const urgent = type === 'APPROVE' && typeof question.expiresAt === 'number'
        return {
          questions,
          urgent,
          needs: urgent || questions.every((one) => one.answer) ? 'nobody' : 'child',
        }
      }
      const isEdited = event.arguments !== undefined && ((callShields && withheld) || call.decided)
      const time = call.client ? null : timed(call, now).expiresAt
      const isHurried = (time !== null || Boolean(event.grant)) && !isEdited
      const next = {
        args: event.arguments ?? call.args,
        expiresAt: time,
        urgent: isHurried,
        needs: call.client ? 'client' : 'nobody',
        client: false,
        approved: true,
        votes: cast,
      }
      if (type === 'APPROVE') return { ...next, unchecked: call.unchecked || isEdited, perhaps: false }
      const unscreened = type === 'REJECT' ? withheld : resultShields
      return { done: true, failed: type === 'REJECT' || isError === true, unscreened, perhaps: false }
    }
    if (!target) return {}
    const { needs, args = '', votes: givers = [], approved } = answer(target)
    const exact = event.grant?.when ? {} : { arguments: args }
    const isUnseen = callShields && withheld && event.arguments !== undefined && !event.grant?.when
    const isGiven = event.grant && approved && needs === 'nobody' && !target.hosted && !isUnseen
    return {
      ...change(run, (one: Call) => one === target, answer(target)),
      ...(isGiven && give(run, { ...event.grant, tool: target.name, ...exact, givers }, now)),
    }
  },
  wake: (run) => ({ pausing: false, ...change(run, due['paused'], { needs: 'nobody' }) }),
  /** A process releases a run. Another process starts the calls that have not run. */
  leave: (before, { event: { notStarted = [] } }) => {
    const run = ungrant(before, notStarted)
    const { grants } = run
    return {
      grants,
      ...change(run, ({ id, done }: Call) => notStarted.includes(id) && !done, { started: false }),
    }
  },
  /**
   * A call that was running when the process died runs again only if its tool may run twice and its time is not over. It
   * continues if it is a sub-agent or stored a handle. After a handoff, the tool is unknown.
   */
  goOnElsewhere: (run, { event, now, ask }) => {
    const { tools, config } = run.setup
    const after = event.tools ?? tools
    const isSafe = ({ name, hasHandle, expiresAt, grant }: Call): boolean =>
      [tools[name], after[name]].every((tool) => {
        if (tool?.delegate || (hasHandle && tool?.keepsHandle)) return true
        const has = run.grants.find(({ id }) => id === grant)
        const isEnded = grant !== null && (!has || isPast(has.until, now))
        return tool && mayRepeat(tool) && !isPast(expiresAt, now) && !isEnded
      })
    const isInDoubt = (it: Call) => due['running']?.(it) && !it.unloaded && it.name in tools && !isSafe(it)
    const approval = config.toolCalls.onInterrupted === 'approval' && {
      started: false,
      needs: 'approval',
      approved: false,
      votes: [],
      expiresAt: null,
      grant: null,
      bound: true,
    }
    const isOpen = !approval && ask('hasOtherTools', run) && Object.values<Json>(tools).some((t) => t.handoff)
    const [affected, patch] = isOpen ? [due['running'], { perhaps: true }] : [isInDoubt, approval || refusal]
    return { ...change(run, affected, patch), setup: { ...run.setup, tools: after } }
  },
}
