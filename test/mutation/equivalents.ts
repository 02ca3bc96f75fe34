/**
 * Changes of the chart that no run can reveal, each with its reason. The list is exact. The run fails for an entry that is caught,
 * or that is no longer generated.
 */
export const equivalents: Readonly<Record<string, string>> = {
  ...because('a refusal is a fatal failure, which is never retried', [
    'RUNNING.asking.requesting: onError [maySendWithout] after the next branch',
  ]),
  ...because(
    'what is said to a run keeps it awake: none sleeps with a message that shields have yet to see',
    ['RUNNING.preparing.checkingLimits: always [isAsleep] after the next branch'],
  ),
  ...because('every way on from an answer settles the batch, too', [
    'WAITING_FOR_TOOL.judgingResults: always [isAnswered] without settleBatch',
  ]),
  ...because('one response is of one kind: no two of these guards are true at once', [
    'RUNNING.judging.accounting: always [hasCalls] after the next branch',
    'RUNNING.judging.accounting: always [isTruncatedCall] after the next branch',
    'RUNNING.judging.accounting: always [mayReprompt] after the next branch',
    'RUNNING.judging.accounting: always [mayRetryEmptyAnswer] after the next branch',
    'RUNNING.judging.accounting: always [isEmpty] after the next branch',
  ]),
  ...because('where no pause has been asked for, there is none to withdraw', [
    '(root): RESUME [isPausing] without its guard',
  ]),
  ...because('a request that is refused before it is made has cost nothing', [
    'RUNNING.asking.requesting: onError [isRefusedByBudget] after the next branch',
  ]),
  ...because(
    'a run at its step cap that may conclude has done so before: both caps ask for it by the same condition',
    ['RUNNING.preparing.checkingLimits: always [isAtStepCap] after the next branch'],
  ),
  ...because('a short cut past accounting, which leads to the same place', [
    'RUNNING.asking.requesting: onDone [asksWithinBudget] is missing',
    'RUNNING.asking.requesting: onDone [asksWithinBudget] after the next branch',
  ]),
  ...because('a short cut past dispatching, which leads to the same place', [
    'RUNNING.judging.judgingCalls: always [hasRunnableCalls] is missing',
    'RUNNING.judging.judgingCalls: always [hasRunnableCalls] after the next branch',
    'WAITING_FOR_TOOL.executing: TOOL_RESULT [isLastOfBatch] is missing',
    'WAITING_FOR_TOOL.executing: TOOL_RESULT [isLastOfBatch] after the next branch',
  ]),
  ...because('a call that shields have to see is not runnable before they have', [
    'RUNNING.judging.judgingCalls: always [hasCallShields] after the next branch',
  ]),
  ...because(
    'a run that its steps or its budget have stopped was not halted by a guard besides, which an invariant holds',
    [
      'RUNNING.judging.stopping: always [isStoppedByCap] after the next branch',
      'RUNNING.judging.stopping: always [isStoppedByBudget] after the next branch',
    ],
  ),
  ...because('recordResult looks itself for an open call of that id', [
    'WAITING_FOR_TOOL.executing: TOOL_RESULT [isOpenCall] without its guard',
  ]),
  ...because('noteChildRest looks itself for an open call of that id', [
    'WAITING_FOR_TOOL.executing: CHILD_WAITING [isOpenCall] without its guard',
  ]),
  ...because('noteSkillChange looks itself for an open call of that id', [
    'WAITING_FOR_TOOL.executing: SKILL_CHANGED [isOpenCall] without its guard',
  ]),
  ...because('noteHandle looks itself for an open call of that id', [
    'WAITING_FOR_TOOL.executing: HANDLE_SAVED [isOpenCall] without its guard',
  ]),
  ...because('noteHandoff looks itself for an open call of that id', [
    'WAITING_FOR_TOOL.executing: HANDED_OFF [isOpenCall] without its guard',
  ]),
  ...because('endGrant looks itself for an open call of that id', [
    'WAITING_FOR_TOOL.executing: GRANT_ENDED [isOpenCall] without its guard',
  ]),
  ...because('expireCalls looks itself for calls whose time is over', [
    'WAITING_FOR_TOOL: APPROVAL_EXPIRED [hasLateCalls] without its guard',
  ]),
  ...because('the batch is settled on every way there; the entry makes sure', [
    'COMPLETED: entry without settleBatch',
  ]),
}

function because(reason: string, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, reason]))
}
