/**
 * The rules of the loop. Columns are place, event, condition, next place and action. A row without an event applies
 * immediately. For each place, the first row whose condition holds applies. `*` is any place, `=` is the same place.
 * `done` and `error` are events of actors. Upper-case places are final states and PAUSED.
 */
export const table = `
# request: The model answers, or fails, only where a request is under way: after no limit, pause or stop.
starting            |                   | has inputShields              | screeningInput  |
starting            |                   |                               | screened        |
screened            |                   | has retrieval & !isRecalled   | retrieving      |
screened            |                   |                               | checkingLimits  |
checkingLimits      |                   | has inputShields & isAtCap    | limited         | stop
checkingLimits      |                   |                               | limited         | stop, tellSteering
limited             |                   | isLate                        | TIMED_OUT       | because timeout
limited             |                   | isPausing                     | PAUSED          | because paused
limited             |                   | isAtCap & concludes & !isSpent | concluding     | stop max_steps
limited             |                   | isAtCap                       | MAX_STEPS       | because max_steps
limited             |                   | isOverCalls & concludes & !isSpent | concluding | stop max_tool_calls
limited             |                   | isOverCalls                   | MAX_STEPS       | because max_tool_calls
limited, fitted     |                   | isSpent                       | BUDGET_EXCEEDED | because
limited             |                   | isAsleep                      | PAUSED          | because sleeping
limited             |                   | has inputShields & isUnseen   | screeningInput  |
limited             |                   | isNearBudget                  | concluding      | stop budget
limited             |                   | isUnplanned                   | planningStep    |
limited             |                   | has fitting                   | fittingContext  |
limited             |                   |                               | fitted          |
fitted              |                   | mustWait                      | backingOff      |
fitted              |                   |                               | requesting      |
requesting          | done model        | isSound & hasText & has outputShields | screeningOutput | takeAnswer
requesting          | done model        | isSound                       | answered        | takeAnswer
requesting          | error model       | waitsForBudget                | PAUSED          | because
requesting, retrieving | error model, error retrieval | isRefusedByBudget | BUDGET_EXCEEDED | because
requesting          | error model       | hasCost & !isOverflow & isSpent | BUDGET_EXCEEDED | because
requesting          | error model       | canLeaveOut                   | requesting      | countResend
requesting          | error model       | mayRetry & isPausing          | PAUSED          | countAttempt, because paused
requesting          | error model       | mayRetry                      | backingOff      | countAttempt
requesting          | error model       |                               | ERROR           | because
concluding          | done conclusion   | isSound & hasText & has outputShields | screeningOutput | takeAnswer
concluding          | done conclusion   | isSound                       | answered        | takeAnswer
concluding          | error conclusion  | canLeaveOut                   | concluding      | countResend
concluding          | error conclusion  |                               | stopping        |

# screening: Shields speak only where they have been asked.
screeningInput      | done inputShields | blocks                        | BLOCKED         | because shield
screeningInput      | done inputShields |                               | screened        |
screeningOutput     | done outputShields | blocks                       | BLOCKED         | because shield
screeningOutput     | done outputShields |                              | answered        |
screeningCalls      | done callShields  |                               | dispatching     | clearCalls
screeningResults    | done resultShields |                              | dispatching     | clearResults

# work: Memory, fitting, guards and waits report only where they have been asked, and waits when they are over.
retrieving          | done retrieval    |                               | checkingLimits  | recall
planningStep        | done plan         |                               | checkingLimits  | plan
fittingContext      | done fitting      |                               | fitted          |
backingOff          | done backOff      | isWaitOver                    | requesting      |
consultingOnCalls   | done callGuards   | isHalted                      | halted          | stopAsFound
consultingOnCalls   | done callGuards   |                               | consulted       | mayRefuse
consultingOnResults | done resultGuards | isHalted                      | halted          | stopAsFound
consultingOnResults | done resultGuards |                               | batchOver       |

# again: An answer that is not whole, or none, is asked for again only as often as it may be.
answered            |                   | isStopping                    | stopping        |
answered            |                   | isSpent & stopsWhenSpent      | BUDGET_EXCEEDED | because
answered            |                   | is calls                      | judgingCalls    |
answered            |                   | isCut & mayRecover            | checkingLimits  | again recoveries
answered            |                   | is truncatedCalls             | ERROR           | because max_tokens
answered            |                   | is empty & hasFailed & mayReprompt | checkingLimits | again reprompts
answered            |                   | is empty & !hasFailed & mayRetryEmpty | checkingLimits | again emptyRetries
answered            |                   | is empty & mindsEmpty         | ERROR           | because empty_response
answered            |                   | isInvalid & mayRepair         | checkingLimits  | again outputRepairs
answered            |                   | isInvalid                     | ERROR           | because invalid_output
answered            |                   | isSteered                     | checkingLimits  | close
answered            |                   | isInteractive                 | message         | close, because message
answered            |                   |                               | COMPLETED       | end

# call: A call has a result, a cost or a question of its own once, and only after it was started.
judgingCalls        |                   |                               | judged          | doubt
judged, judgingResults |                | isWatched                     | halting         |
judged              |                   | has userGuards & consults     | consultingOnCalls |
judged              |                   |                               | consulted       |
consulted           |                   | has callShields               | screeningCalls  |
consulted           |                   |                               | dispatching     |
dispatching         |                   | cancels late                  | CANCELLED       | because approval_expired
dispatching         |                   | some late                     | dispatching     | expire
dispatching         |                   | doubtsGranted                 | dispatching     | refuseGranted
dispatching         |                   | isGranted                     | dispatching     | useGrants
dispatching         |                   | doubts runnable               | dispatching     | refuse runnable
dispatching         |                   | some runnable                 | executing       | start
dispatching         |                   | some unscreened               | screeningResults |
dispatching         |                   | doubts approval               | dispatching     | refuse approval
dispatching         |                   | some approval                 | approval        | because approval, ask
dispatching         |                   | doubts unchecked              | dispatching     | refuse unchecked
dispatching         |                   | some unchecked                | screeningCalls  |
dispatching         |                   | doubts client                 | dispatching     | refuse client
dispatching         |                   | some client                   | toolOutput      | because tool_output
dispatching         |                   | doubts paused                 | dispatching     | refuse paused
dispatching         |                   | some paused                   | PAUSED          | because paused
dispatching         |                   |                               | judgingResults  | noteFailures
executing           | TOOL_RESULT       | isStarted & isHopeless        | halting         | takeReport, noteFailures
executing           | TOOL_RESULT, CHILD_USAGE | isStarted & hasCost & isSpent | BUDGET_EXCEEDED | because
executing           | TOOL_RESULT, CHILD_WAITING | isStarted & isLast     | dispatching     | takeReport, refuse running
executing           | TOOL_RESULT, CHILD_WAITING | isStarted              | =               | takeReport
executing           | CHILD_USAGE, SKILL_CHANGED, HANDLE_SAVED, HANDED_OFF | isStarted | = | keep
executing           | TOOLS_LOADED      | isStarted                     | =               | load
executing           | BATCH_DONE, done tools, error tools |             | dispatching     | refuse running
judgingResults      |                   | isConsulted & some loaded     | consultingOnResults |
judgingResults      |                   |                               | batchOver       |
batchOver           |                   | isAnswered & has outputShields | screeningOutput | takeResult
batchOver           |                   | isAnswered                    | answered        | takeResult
batchOver           |                   |                               | checkingLimits  | close
halting             |                   | mayBe                         | halted          | stop pause
halting             |                   |                               | halted          | stop error
halted              |                   | stopsWith error & concludes & !isSpent | concluding | close
halted              |                   | stopsWith pause & !isAtCap & !isSpent & mayBe | concluding | close
halted              |                   |                               | stopping        | close
stopping            |                   | stopsWith max_                | MAX_STEPS       | because stop
stopping            |                   | stopsWith budget              | BUDGET_EXCEEDED | because
stopping            |                   | stopsWith pause               | PAUSED          | close, because
stopping            |                   |                               | ERROR           | because

# question: An answer meets a question that is open, of the message that asked it.
*                   | APPROVE, REJECT, TOOL_OUTPUT | isAsked            | =               | takeReply
approval            |                   | doubts approval               | dispatching     | refuse approval
approval            |                   | !some approval                | dispatching     |
toolOutput          |                   | doubts client                 | dispatching     | refuse client
toolOutput          |                   | !some client                  | dispatching     |

# expiry: A call starts before its question expires or never. A question that expires lets its call start at once.
approval            |                   | some urgent                   | dispatching     |
*                   | APPROVE, REJECT   | isTooLate                     | =               |
executing, screeningCalls, screeningResults | APPROVAL_EXPIRED | cancels late | CANCELLED | because approval_expired
executing, screeningCalls, screeningResults | APPROVAL_EXPIRED | some late | = | expire
approval, toolOutput | APPROVAL_EXPIRED | some late                     | dispatching     |
*                   | APPROVAL_EXPIRED  |                               | =               |

# grant: A grant starts the calls that it covers, until it ends, and its uses count when they start.
approval            | GRANT             | startsCalls                   | dispatching     | takeGrant
*                   | GRANT             |                               | =               | takeGrant
*                   | REVOKE            | isKnownGrant                  | =               | dropGrant
approval, executing, screeningCalls, screeningResults | REVOKE | isOwn  | =               | takeBack
executing           | GRANT_ENDED       | isStarted & hasGrant & isLast | dispatching     | endGrant, refuse running
executing           | GRANT_ENDED       | isStarted & hasGrant          | =               | endGrant

# control: Deadlines pass once their time has come; a reply meets a run that waits for one; only a run at work is resumed.
message             | REPLY             |                               | starting        | listen
backingOff          | PAUSE             |                               | PAUSED          | because paused
PAUSED              | PAUSE, RESUMED    |                               | =               |
PAUSED              | RESUME            | isForLater                    | =               | because sleeping, stop
PAUSED              | RESUME            | some paused                   | dispatching     | wake
PAUSED              | RESUME            |                               | checkingLimits  |
PAUSED              | STEER             | some paused                   | dispatching     | wake, steer
message, PAUSED     | STEER             |                               | checkingLimits  | steer
*                   | PAUSE             |                               | =               | pause
*                   | RESUME            | isPausing                     | =               | wake
*                   | STEER             |                               | =               | steer
*                   | CANCEL            |                               | CANCELLED       | because cancelled
*                   | STORE_FAILED      |                               | ERROR           | because store_error
*                   | DEADLINE          | isLate                        | TIMED_OUT       | because timeout
*                   | RELEASED          |                               | =               | leave
*                   | RESUMED           | !isResting & isLate           | TIMED_OUT       | because timeout
executing           | RESUMED           | isIdle                        | =               | goOnElsewhere
executing           | RESUMED           |                               | dispatching     | goOnElsewhere
*                   | RESUMED           | !isResting                    | =               | goOnElsewhere
`
