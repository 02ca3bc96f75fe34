/**
 * Changes of the chart that change nothing that a run can show, each with its reason. The list is exact: one that is
 * caught after all, or no longer made, fails the run.
 */
export const equivalents: Readonly<Record<string, string>> = {
  ...because('the entry of a final state takes a missing reason for `internal`', [
    'RUNNING.screeningInput: onError without because(internal)',
    'RUNNING.retrieving: onError without because(internal)',
    'RUNNING.backingOff: onError without because(internal)',
    'RUNNING.consultingOnCalls: onError without because(internal)',
    'RUNNING.fittingContext: onError without because(internal)',
    'WAITING_FOR_TOOL.screeningResults: onError without because(internal)',
    'WAITING_FOR_TOOL.screeningCalls: onError without because(internal)',
    'WAITING_FOR_TOOL.consultingOnResults: onError without because(internal)',
  ]),
  ...because('one response is of one kind: no two of these guards are true at once', [
    'RUNNING.accounting: always [hasCalls] after the next branch',
    'RUNNING.accounting: always [isFiltered] after the next branch',
    'RUNNING.accounting: always [isRefusal] after the next branch',
    'RUNNING.accounting: always [isTruncatedCall] after the next branch',
    'RUNNING.accounting: always [isTruncated] after the next branch',
    'RUNNING.accounting: always [mayReprompt] after the next branch',
    'RUNNING.accounting: always [mayAskAgain] after the next branch',
    'RUNNING.accounting: always [isEmpty] after the next branch',
  ]),
  ...because('a request that is refused before it is made, or that overflows the window, has cost nothing', [
    'RUNNING.requesting: onError [isRefusedByBudget] after the next branch',
    'RUNNING.requesting: onError [isContextOverflow] after the next branch',
  ]),
  ...because('a request that is not made brings no text', [
    'RUNNING.requesting: onError [isRefusedByBudget] without keepPartial',
  ]),
  ...because('a short cut past dispatching, which leads to the same place', [
    'RUNNING.checkingRepetition: always [hasRunnableCalls] is missing',
    'RUNNING.checkingRepetition: always [hasRunnableCalls] after the next branch',
    'WAITING_FOR_TOOL.executing: TOOL_RESULT [isLastOfBatch] is missing',
    'WAITING_FOR_TOOL.executing: TOOL_RESULT [isLastOfBatch] after the next branch',
  ]),
  ...because('a call that shields have to see is not runnable before they have', [
    'RUNNING.checkingRepetition: always [hasCallShields] after the next branch',
  ]),
  ...because(
    'a run that its steps have stopped was not halted by a guard besides, which an invariant holds',
    [
      'RUNNING.concluding: onDone [isStoppedByStepCap] after the next branch',
      'RUNNING.concluding: onError [isStoppedByStepCap] after the next branch',
      'RUNNING.screeningOutput: onDone [isStoppedByStepCap] after the next branch',
    ],
  ),
  ...because('recordResult looks itself for an open call of that id', [
    'WAITING_FOR_TOOL.executing: TOOL_RESULT [isOpenCall] without its guard',
  ]),
  ...because('noteChildRest looks itself for an open call of that id', [
    'WAITING_FOR_TOOL.executing: CHILD_RESTS [isOpenCall] without its guard',
  ]),
  ...because('the batch is settled on every way there; the entry makes sure', [
    'COMPLETED: entry without settleBatch',
  ]),
}

function because(reason: string, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, reason]))
}
