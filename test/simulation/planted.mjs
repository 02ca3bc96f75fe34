// Defects that the simulation must find, as changes to code locations. `npm run simulate -- --planted` plants
// each one separately and looks for it. `seed` is a seed that finds it. A missing location is an error. Move
// the defect to the current location of its code.
const store = 'src/core/sessions/store/table-store.ts'
const reader = 'src/core/sessions/inbox/inbox-reader.ts'
const log = 'src/core/sessions/log/session-log.ts'

export const planted = [
  {
    name: 'no fencing: whoever held the session may write',
    seed: 4,
    patches: [
      {
        file: store,
        find: 'const row = findOwned(lease)\n        if (!row?.lease) throw leaseLostError(lease)\n        row.lease = { ...row.lease, expiresAt }',
        put: 'const row = table.session(lease.sessionId)\n        if (!row) throw leaseLostError(lease)\n        row.lease = { ...lease, instance, expiresAt }',
      },
      {
        file: store,
        find: 'const row = findOwned(lease)\n        if (!row?.lease || row.lease.expiresAt <= time) throw leaseLostError(lease)',
        put: 'const row = table.session(sessionId)\n        if (!row) throw leaseLostError(lease)',
      },
    ],
  },
  {
    name: 'a lease that has run out still writes',
    seed: 227,
    patches: [{ file: store, find: ' || row.lease.expiresAt <= time', put: '' }],
  },
  {
    name: 'two may hold a session',
    seed: 1,
    patches: [
      {
        file: store,
        find: 'const busy = findHolder(row)\n        if (busy !== null) throw sessionBusyError(sessionId, busy)\n        const lease',
        put: 'const lease',
      },
    ],
  },
  {
    name: 'the lease of a run at work is not renewed',
    seed: 35,
    patches: [
      {
        file: 'src/core/sessions/log/lease.ts',
        find: 'work: () => void renewAll(),',
        put: 'work: () => undefined,',
      },
      {
        file: 'src/core/sessions/log/write-ahead-log.ts',
        find: 'return this.#isHeld && mayBeStale ? this.#renew() : undefined',
        put: 'return undefined',
      },
    ],
  },
  {
    name: 'the lease is given back while a run works',
    seed: 4,
    patches: [
      {
        file: log,
        find: 'if (isWorkState(run.context.state)) this.markRunning(run.context)',
        put: 'if (isWorkState(run.context.state)) this.markRunning(run.context), void this.close()',
      },
    ],
  },
  {
    name: 'a receipt before the message is in the inbox',
    seed: 3,
    patches: [
      {
        file: 'src/core/run/send-to-stored-session.ts',
        find: 'const { message: number, holder } = await putMessage(store, id, text)',
        put: 'void putMessage(store, id, text).catch(() => undefined)\n  const { message: number, holder } = { message: 1, holder: isHeld ? "" : null }',
      },
    ],
  },
  {
    name: 'a message of the inbox is applied twice',
    seed: 7,
    patches: [
      {
        file: reader,
        find: 'else if (message <= before) this.remove([message])\n      else if (message <= this.applied) this.#done.push(message)\n      else if (this.#isNew(message)) ',
        put: 'else if (this.#isNew(message) || true) ',
      },
    ],
  },
  {
    name: 'an effect before its record is written',
    seed: 1,
    patches: [
      {
        file: 'src/core/live/runtime.ts',
        find: 'return this.#endOnFailure(this.binding.journal?.flush())',
        put: 'return undefined',
      },
    ],
  },
  {
    name: 'a call in doubt is made again',
    seed: 2,
    patches: [
      {
        file: 'machines/agent/call-state.ts',
        find: 'if (!isUnderWay(call) || call.unloaded) return false',
        put: 'return false',
      },
    ],
  },
  {
    name: 'a run goes on by the clock of the process that takes it up',
    seed: 2,
    patches: [
      {
        file: 'src/core/sessions/open-session.ts',
        find: 'if (!waits) return Math.max(at, clock.now())\n  return readStoreTime(store, lease.sessionId, getAcquiredAt(lease), { at, clock })',
        put: 'return waits ? clock.now() : clock.now()',
      },
    ],
  },
  {
    name: 'a write whose answer is lost is made again',
    seed: 1,
    patches: [
      {
        file: 'src/core/sessions/log/write-ahead-log.ts',
        find: 'return chain(answer, (appended) => {',
        put: 'const again = () => this.store.append(this.#lease, records, summary)\n    return chain(answer instanceof Promise ? answer.catch(again) : answer, (appended) => {',
      },
      { file: store, find: 'checkFollows(sessionId, records, row.head)', put: '' },
    ],
  },
  {
    name: 'an approval is applied to another call',
    seed: 122,
    patches: [
      {
        file: 'src/core/run/answer-events.ts',
        find: 'if (fingerprint !== undefined && fingerprint !== call.fingerprint)',
        put: 'if (call === null)',
      },
      {
        file: 'src/core/run/answer-events.ts',
        find: 'if (messageId !== undefined && messageId !== call.messageId)',
        put: 'if (call === null)',
      },
    ],
  },
  {
    name: 'a cancel is forgotten by who takes the run up',
    seed: 10,
    patches: [
      {
        file: 'src/core/sessions/inbox/session-message.ts',
        find: "ControlEvent['type'][] = [\n  'CANCEL',",
        put: "ControlEvent['type'][] = [",
      },
    ],
  },
  {
    name: 'a message that is sent again is said again',
    seed: 95,
    patches: [
      {
        file: 'src/core/sessions/inbox/queued-message.ts',
        find: 'if (parsed === null || known.has(parsed.messageId)) {',
        put: 'if (parsed === null) {',
      },
    ],
  },
  {
    name: 'what is read between two runs is for the next one',
    seed: 505,
    patches: [
      { file: reader, find: 'this.queued = queued\n    this.#forget(queued)', put: 'this.queued = queued' },
      {
        file: reader,
        find: 'for (const message of this.#open.keys()) if (message <= last) this.#forget(message)',
        put: '',
      },
      {
        file: reader,
        find: 'if (!this.#isNew(message) || message <= this.queued) return',
        put: 'if (!this.#isNew(message)) return',
      },
    ],
  },
  {
    name: 'a list learns later that a run is at work',
    seed: 78,
    patches: [
      { file: log, find: 'if (isWorkState(run.context.state)) this.markRunning(run.context)', put: '' },
    ],
  },
  {
    name: 'a run is woken before its time',
    seed: 17,
    patches: [
      {
        file: 'src/core/drive/wake-sleepers.ts',
        find: 'return (findDueTime(context) ?? now) > now',
        put: 'return findDueTime(context) === now',
      },
      {
        file: 'src/core/drive/wake-sleepers.ts',
        find: 'return (findDueTime(context) ?? Infinity) <= now',
        put: 'return findDueTime(context) !== null && now > 0',
      },
    ],
  },
  {
    name: 'a run that sleeps sleeps anew each time that it is looked at',
    seed: 150,
    patches: [
      {
        file: log,
        find: 'if (findDueTime(context) === null || isNews) this.setSummary(context)',
        put: 'if (findDueTime(context) === null || typeof isNews) this.setSummary(context)',
      },
    ],
  },
  {
    name: 'the uses of a grant do not count',
    seed: 38,
    patches: [
      {
        file: 'machines/agent/grants.ts',
        find: 'grant.uses === undefined ? grant : { ...grant, uses: grant.uses - 1 }',
        put: 'grant',
      },
    ],
  },
  {
    name: 'a call starts although its grant was revoked while it waited',
    seed: 469,
    patches: [
      {
        file: 'src/core/effects/run-tools.ts',
        find: 'if (isGrantEnded(context, call, runtime.time.now())) return false',
        put: '',
      },
    ],
  },
  {
    name: 'one step more than allowed',
    seed: 2,
    patches: [{ file: 'guards/call-caps.ts', find: 'steps >= maxSteps', put: 'steps > maxSteps' }],
  },
  {
    name: 'calls without a result in the history',
    seed: 6,
    patches: [
      {
        file: 'machines/agent/actions/update-transcript.ts',
        find: 'if (call.result !== undefined || !isMeant(call)) return call',
        put: 'if (call !== null) return call',
      },
    ],
  },
]
