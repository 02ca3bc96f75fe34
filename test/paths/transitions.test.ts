// @ts-nocheck Generated from machines/agent.machine.ts by `npm run generate`. Do not edit.
import { replay } from '../../src/testing/index.js'
import { agentHarness } from '../support/agent-harness/agent-harness.js'

const inputs = {
  plain: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":500,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":2,"rateLimitAttempts":2,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":1,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":{"reprompts":1,"retries":1}}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with a deadline']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":500000,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with every shield']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"conclude","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":{"reprompts":0,"retries":0}}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":true,"outputShields":true,"callShields":true,"resultShields":false,"retrieval":true,"fitting":true,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with result shields']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":true,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with input shields']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":true,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with retrieval']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":true,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['summarizing near the budget']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":500,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":2,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":true,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with custom guards']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":true,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with custom guards and shields']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":true,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":true,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with an output schema']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":500,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":1},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":true},"input":[{"content":"Go."}]},
  ['asking about interrupted calls']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"approval"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false,"keepsHandle":true},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with one call']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":3,"maxToolCalls":1,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":500,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":true,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with one call, concluding']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":1,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"conclude","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with deferred tools']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":1,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false,"deferred":true,"maxCalls":1},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":true,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with sub-agents']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":500,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"research":{"readOnly":false,"idempotent":false,"polling":false,"delegate":true}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with sleep']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":2000000,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"nap":{"readOnly":true,"idempotent":true,"polling":false},"research":{"readOnly":false,"idempotent":false,"polling":false,"delegate":true}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with skills']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":3,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"load_skill":{"readOnly":true,"idempotent":true,"polling":false,"skill":true}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with handoffs']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"transfer_to_billing":{"readOnly":true,"idempotent":true,"polling":false,"handoff":true}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with policies and shields']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"govern":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":true,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}],"requesters":[{"id":"ann"}]},
  ['with questions that expire']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"pledge":{"readOnly":false,"idempotent":false,"polling":false},"research":{"readOnly":false,"idempotent":false,"polling":false,"delegate":true}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['with grants']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"lend":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['ending with a result']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":500,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":true,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false,"endsRun":true},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['ending with a screened result']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false,"endsRun":true},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":true,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['stopping on results']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":1},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":true,"stopWhen":true},"input":[{"content":"Go."}]},
  ['stopping on screened results']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":1},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false,"endsRun":true},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":true,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":true,"stopWhen":true},"input":[{"content":"Go."}]},
  ['with prepared steps']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false,"prepareStep":true},"input":[{"content":"Go."}]},
  ['with content that the provider refuses']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":2,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":500,"outputTokens":0,"costLimit":0,"onLimit":"conclude","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"browse":{"readOnly":true,"idempotent":true,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  interactive: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":true,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['near the budget with preflight']: {"messages":[],"usage":{"inputTokens":499,"outputTokens":0,"totalTokens":499,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":500,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":true,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['concluding near the cost limit']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0.95,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":1,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":1,"onLimit":"stop","onNearBudget":"conclude"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":3,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false,"prepareStep":true},"input":[{"content":"Go."}]},
  ['watching repetition, concluding']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":4,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":0,"outputTokens":0,"costLimit":0,"onLimit":"conclude","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":2,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":null,"failing":null,"repeatedCall":{"haltAt":"next","counts":"unchanged","valueChars":null,"onRepeat":"halt","onHalt":"error","lastWords":true},"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":true,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
  ['watching sub-agents']: {"messages":[],"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"guardrails":{"version":1,"terminalDelegation":{"due":null},"failing":{"identical":[],"any":0,"transientAny":0,"refused":[],"due":null},"repeatedCall":{"batch":null,"outcome":null,"count":0,"refused":[],"due":null},"repeatedOutput":{"output":null,"rounds":0,"due":null},"cycle":{"rounds":[],"matches":[],"strangers":0,"due":null},"progress":{"pairs":[],"stale":0,"batch":null,"waits":false,"changedAt":-1,"failing":0,"unknownTools":0,"refused":0,"transient":0,"tools":[],"lastNudge":null,"due":null},"duplicates":{"due":null},"user":{}},"warnedOfBudget":false,"fit":null,"now":1000,"runId":"run","sessionId":"session","config":{"limits":{"maxSteps":4,"maxToolCalls":null,"maxToolCallsPerResponse":null,"timeoutMs":0,"tokenBudget":500,"outputTokens":0,"costLimit":0,"onLimit":"stop","onNearBudget":"warn"},"budget":{"scope":"session","countCached":true,"onOvershoot":"exceeded","finishBatch":false,"preflight":false,"onUnknownPrice":"error","onMissingUsage":"estimate"},"retry":{"maxAttempts":1,"rateLimitAttempts":1,"baseDelayMs":1000,"maxDelayMs":60000,"maxRetryAfterMs":600000},"stream":true,"streamIdleMs":120000,"storeTimeoutMs":60000,"contentIdleMs":600000,"completion":{"onMissingEnd":"retry","maxOutputRepairs":2},"context":{"window":0,"strategy":"compact"},"toolCalls":{"concurrency":8,"timeoutMs":600000,"maxResultChars":50000,"onInterrupted":"result"},"interactive":false,"guardrails":{"maxTokensRecoveries":0,"maxRepeatedToolSteps":2,"reserveTokens":512,"reserveCostFraction":0.1,"terminalDelegation":{"onHalt":"error"},"failing":null,"repeatedCall":null,"repeatedOutput":null,"cycle":null,"progress":null,"emptyAnswer":null}},"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false}},"features":{"inputShields":false,"outputShields":false,"callShields":false,"resultShields":false,"retrieval":false,"fitting":false,"userGuards":false,"structuredOutput":false},"input":[{"content":"Go."}]},
}

describe('every transition, on the live agent', () => {
  test('1. plain: pause, model: recoverable error, …, model: truncated, model: recoverable error, back-off failed → ERROR (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['plain']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // pause
      { event: {"type":"PAUSE","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: recoverable error
      { event: {"type":"xstate.error.actor.model","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":null,"kind":"transient","code":"http_503","message":"It failed: http_503.","jitter":1},"actorId":"model","now":1000}, state: {"value":"PAUSED","status":"active"} },
      // steer
      { event: {"type":"STEER","text":"Hurry.","now":1000}, state: {"value":{"RUNNING":{"asking":"backingOff"}},"status":"active"} },
      // back-off elapsed
      { event: {"type":"xstate.done.actor.backOff","actorId":"backOff","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: truncated
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Do","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"length","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"model","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: recoverable error
      { event: {"type":"xstate.error.actor.model","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":null,"kind":"transient","code":"http_503","message":"It failed: http_503.","jitter":1},"actorId":"model","now":1000}, state: {"value":{"RUNNING":{"asking":"backingOff"}},"status":"active"} },
      // back-off failed
      { event: {"type":"xstate.error.actor.backOff","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":null,"kind":"fatal","code":"internal","message":"It failed: internal.","jitter":1},"actorId":"backOff","now":1000}, state: {"value":"ERROR","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 8 })
  })

  test('2. plain: model: one call of each kind, resumed, submit output, reject, model: text → COMPLETED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['plain']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: one call of each kind
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Working.","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"transfer","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"pick","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"},{"id":"b","needs":"approval"},{"id":"c","needs":"client"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000,"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"write":{"readOnly":false,"idempotent":false,"polling":false}}}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // submit output
      { event: {"type":"TOOL_OUTPUT","callId":"c","content":"Picked.","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // reject
      { event: {"type":"REJECT","callId":"b","why":"No.","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: text
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Done.","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"model","now":1000}, state: {"value":"COMPLETED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 6 })
  })

  test('3. plain: model: call, resumed, model: empty → MAX_STEPS (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['plain']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000,"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"write":{"readOnly":false,"idempotent":false,"polling":false}}}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: empty
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"model","now":1000}, state: {"value":"MAX_STEPS","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('4. plain: model: call, tool runner failed, model: text over budget → BUDGET_EXCEEDED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['plain']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool runner failed
      { event: {"type":"xstate.error.actor.tools","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":null,"kind":"fatal","code":"internal","message":"It failed: internal.","jitter":1},"actorId":"tools","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: text over budget
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Done.","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":999,"outputTokens":1,"totalTokens":1000,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"model","now":1000}, state: {"value":"BUDGET_EXCEEDED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('5. plain: model: one call of each kind, submit output during other calls → WAITING_FOR_TOOL.executing', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['plain']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: one call of each kind
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Working.","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"transfer","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"pick","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"},{"id":"b","needs":"approval"},{"id":"c","needs":"client"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // submit output during other calls
      { event: {"type":"TOOL_OUTPUT","callId":"c","content":"Picked.","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('6. plain: model: two approvals, reject → WAITING_FOR_INPUT.approval', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['plain']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: two approvals
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"transfer","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"transfer","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"approval"},{"id":"b","needs":"approval"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // reject
      { event: {"type":"REJECT","callId":"a","why":"No.","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('7. plain: model: two client calls, submit output → WAITING_FOR_INPUT.toolOutput', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['plain']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: two client calls
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"pick","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"pick","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"client"},{"id":"b","needs":"client"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"toolOutput"},"status":"active"} },
      // submit output
      { event: {"type":"TOOL_OUTPUT","callId":"a","content":"Picked.","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"toolOutput"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('8. plain: model: empty, model: empty → ERROR (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['plain']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: empty
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"model","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: empty
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"model","now":1000}, state: {"value":"ERROR","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('9. with a deadline: steer, model: text after the deadline → TIMED_OUT (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with a deadline']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // steer
      { event: {"type":"STEER","text":"Hurry.","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: text after the deadline
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Done.","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"model","now":1000000}, state: {"value":"TIMED_OUT","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('10. with a deadline: model: call, resumed after the deadline → TIMED_OUT (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with a deadline']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed after the deadline
      { event: {"type":"RESUMED","now":1000000}, state: {"value":"TIMED_OUT","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('11. with a deadline: deadline → TIMED_OUT (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with a deadline']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // deadline
      { event: {"type":"DEADLINE","now":1000000}, state: {"value":"TIMED_OUT","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 2 })
  })

  test('12. with a deadline: resumed after the deadline → TIMED_OUT (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with a deadline']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // resumed after the deadline
      { event: {"type":"RESUMED","now":1000000}, state: {"value":"TIMED_OUT","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 2 })
  })

  test('13. with every shield: input allowed, retrieved → RUNNING.preparing.fittingContext', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with every shield']}, state: {"value":{"RUNNING":{"preparing":"screeningInput"}},"status":"active"} },
      // input allowed
      { event: {"type":"xstate.done.actor.inputShields","output":[{"action":"allow","message":null,"content":"Go.","findings":[{"shield":"own","action":"allow","message":null,"durationMs":1}],"index":0,"part":null}],"actorId":"inputShields","now":1000}, state: {"value":{"RUNNING":{"preparing":"retrieving"}},"status":"active"} },
      // retrieved
      { event: {"type":"xstate.done.actor.retrieval","output":[{"source":"handbook","text":"What it says."}],"actorId":"retrieval","now":1000}, state: {"value":{"RUNNING":{"preparing":"fittingContext"}},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('14. with result shields: model: one call of each kind, tool: ok, …, submit output, pause, results allowed → PAUSED', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with result shields']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: one call of each kind
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Working.","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"transfer","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"pick","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"},{"id":"b","needs":"approval"},{"id":"c","needs":"client"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: ok
      { event: {"type":"TOOL_RESULT","callId":"a","result":{"status":"ok","content":"The result.","durationMs":1},"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"screeningResults"},"status":"active"} },
      // reject during other calls
      { event: {"type":"REJECT","callId":"b","why":"No.","withheld":true,"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"screeningResults"},"status":"active"} },
      // results allowed
      { event: {"type":"xstate.done.actor.resultShields","output":[{"action":"allow","message":null,"content":"What it may say.","findings":[{"shield":"own","action":"allow","message":null,"durationMs":1}],"callId":"a"},{"action":"allow","message":null,"content":"What it may say.","findings":[{"shield":"own","action":"allow","message":null,"durationMs":1}],"callId":"b"}],"actorId":"resultShields","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"toolOutput"},"status":"active"} },
      // submit output
      { event: {"type":"TOOL_OUTPUT","callId":"c","content":"Picked.","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"screeningResults"},"status":"active"} },
      // pause
      { event: {"type":"PAUSE","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"screeningResults"},"status":"active"} },
      // results allowed
      { event: {"type":"xstate.done.actor.resultShields","output":[{"action":"allow","message":null,"content":"What it may say.","findings":[{"shield":"own","action":"allow","message":null,"durationMs":1}],"callId":"c"}],"actorId":"resultShields","now":1000}, state: {"value":"PAUSED","status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 8 })
  })

  test('15. with result shields: model: one call of each kind, tool: ok, submit output during other calls → WAITING_FOR_TOOL.screeningResults', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with result shields']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: one call of each kind
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Working.","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"transfer","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"pick","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"},{"id":"b","needs":"approval"},{"id":"c","needs":"client"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: ok
      { event: {"type":"TOOL_RESULT","callId":"a","result":{"status":"ok","content":"The result.","durationMs":1},"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"screeningResults"},"status":"active"} },
      // submit output during other calls
      { event: {"type":"TOOL_OUTPUT","callId":"c","content":"Picked.","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"screeningResults"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('16. with input shields: steer, input allowed, input blocked → BLOCKED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with input shields']}, state: {"value":{"RUNNING":{"preparing":"screeningInput"}},"status":"active"} },
      // steer
      { event: {"type":"STEER","text":"Hurry.","now":1000}, state: {"value":{"RUNNING":{"preparing":"screeningInput"}},"status":"active"} },
      // input allowed
      { event: {"type":"xstate.done.actor.inputShields","output":[{"action":"allow","message":null,"content":"Go.","findings":[{"shield":"own","action":"allow","message":null,"durationMs":1}],"index":0,"part":null}],"actorId":"inputShields","now":1000}, state: {"value":{"RUNNING":{"preparing":"screeningInput"}},"status":"active"} },
      // input blocked
      { event: {"type":"xstate.done.actor.inputShields","output":[{"action":"block","message":"Not that.","content":"Not that.","findings":[{"shield":"own","action":"block","message":"Not that.","durationMs":1}],"index":0,"part":null}],"actorId":"inputShields","now":1000}, state: {"value":"BLOCKED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('17. with retrieval: retrieval refused by a shared budget → BUDGET_EXCEEDED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with retrieval']}, state: {"value":{"RUNNING":{"preparing":"retrieving"}},"status":"active"} },
      // retrieval refused by a shared budget
      { event: {"type":"xstate.error.actor.retrieval","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":null,"kind":"fatal","code":"shared_budget","message":"It failed: shared_budget.","jitter":1,"budget":"tenant"},"actorId":"retrieval","now":1000}, state: {"value":"BUDGET_EXCEEDED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 2 })
  })

  test('18. summarizing near the budget: pause, everything fits, …, steer, resumed, cancel → CANCELLED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['summarizing near the budget']}, state: {"value":{"RUNNING":{"preparing":"fittingContext"}},"status":"active"} },
      // pause
      { event: {"type":"PAUSE","now":1000}, state: {"value":{"RUNNING":{"preparing":"fittingContext"}},"status":"active"} },
      // everything fits
      { event: {"type":"xstate.done.actor.fitting","output":{"fit":null,"strategy":"compact","before":20,"after":10,"usage":null,"warning":null},"actorId":"fitting","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: recoverable error
      { event: {"type":"xstate.error.actor.model","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":null,"kind":"transient","code":"http_503","message":"It failed: http_503.","jitter":1},"actorId":"model","now":1000}, state: {"value":"PAUSED","status":"active"} },
      // steer
      { event: {"type":"STEER","text":"Hurry.","now":1000}, state: {"value":{"RUNNING":{"preparing":"fittingContext"}},"status":"active"} },
      // everything fits
      { event: {"type":"xstate.done.actor.fitting","output":{"fit":null,"strategy":"compact","before":20,"after":10,"usage":null,"warning":null},"actorId":"fitting","now":1000}, state: {"value":{"RUNNING":{"asking":"backingOff"}},"status":"active"} },
      // pause
      { event: {"type":"PAUSE","now":1000}, state: {"value":"PAUSED","status":"active"} },
      // pause
      { event: {"type":"PAUSE","now":1000}, state: {"value":"PAUSED","status":"active"} },
      // resume
      { event: {"type":"RESUME","now":1000}, state: {"value":{"RUNNING":{"preparing":"fittingContext"}},"status":"active"} },
      // steer
      { event: {"type":"STEER","text":"Hurry.","now":1000}, state: {"value":{"RUNNING":{"preparing":"fittingContext"}},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000,"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"write":{"readOnly":false,"idempotent":false,"polling":false}}}, state: {"value":{"RUNNING":{"preparing":"fittingContext"}},"status":"active"} },
      // cancel
      { event: {"type":"CANCEL","now":1000}, state: {"value":"CANCELLED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 12 })
  })

  test('19. summarizing near the budget: summarized over budget → BUDGET_EXCEEDED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['summarizing near the budget']}, state: {"value":{"RUNNING":{"preparing":"fittingContext"}},"status":"active"} },
      // summarized over budget
      { event: {"type":"xstate.done.actor.fitting","output":{"fit":null,"strategy":"compact","before":20,"after":10,"usage":{"inputTokens":999,"outputTokens":1,"totalTokens":1000,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"warning":null},"actorId":"fitting","now":1000}, state: {"value":"BUDGET_EXCEEDED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 2 })
  })

  test('20. with custom guards: model: call, a custom guard blocks the calls, custom guards allow the results, model: truncated call → ERROR (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with custom guards']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"RUNNING":{"judging":"consultingOnCalls"}},"status":"active"} },
      // a custom guard blocks the calls
      { event: {"type":"xstate.done.actor.callGuards","output":{"states":{"own":1},"findings":[{"action":"block","guard":"own","evidence":"own: seen","message":"Not that.","onHalt":"error","callIds":null}],"warnings":[]},"actorId":"callGuards","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"consultingOnResults"},"status":"active"} },
      // custom guards allow the results
      { event: {"type":"xstate.done.actor.resultGuards","output":{"states":{"own":1},"findings":[],"warnings":[]},"actorId":"resultGuards","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: truncated call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a2","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"length","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a2","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":"ERROR","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 5 })
  })

  test('21. with custom guards: model: call, a custom guard blocks the calls, a custom guard halts at the results → PAUSED', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with custom guards']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"RUNNING":{"judging":"consultingOnCalls"}},"status":"active"} },
      // a custom guard blocks the calls
      { event: {"type":"xstate.done.actor.callGuards","output":{"states":{"own":1},"findings":[{"action":"block","guard":"own","evidence":"own: seen","message":"Not that.","onHalt":"error","callIds":null}],"warnings":[]},"actorId":"callGuards","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"consultingOnResults"},"status":"active"} },
      // a custom guard halts at the results
      { event: {"type":"xstate.done.actor.resultGuards","output":{"states":{"own":1},"findings":[{"action":"halt","guard":"own","evidence":"own: seen","message":"Not that.","onHalt":"pause","callIds":null}],"warnings":[]},"actorId":"resultGuards","now":1000}, state: {"value":"PAUSED","status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('22. with custom guards: model: call, a custom guard halts at the calls → ERROR (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with custom guards']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"RUNNING":{"judging":"consultingOnCalls"}},"status":"active"} },
      // a custom guard halts at the calls
      { event: {"type":"xstate.done.actor.callGuards","output":{"states":{"own":1},"findings":[{"action":"halt","guard":"own","evidence":"own: seen","message":"Not that.","onHalt":"error","callIds":null}],"warnings":[]},"actorId":"callGuards","now":1000}, state: {"value":"ERROR","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('23. with custom guards and shields: model: call, custom guards allow the calls → WAITING_FOR_TOOL.screeningCalls', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with custom guards and shields']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"RUNNING":{"judging":"consultingOnCalls"}},"status":"active"} },
      // custom guards allow the calls
      { event: {"type":"xstate.done.actor.callGuards","output":{"states":{"own":1},"findings":[],"warnings":[]},"actorId":"callGuards","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"screeningCalls"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('24. with an output schema: model: text instead of an object, model: text instead of an object → ERROR (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with an output schema']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: text instead of an object
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Done.","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[],"outputProblem":"The answer is not a JSON object."},"actorId":"model","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: text instead of an object
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Done.","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[],"outputProblem":"The answer is not a JSON object."},"actorId":"model","now":1000}, state: {"value":"ERROR","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('25. asking about interrupted calls: model: one call of each kind, tool runner ended, …, resumed, tool runner ended, store failed → ERROR (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['asking about interrupted calls']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: one call of each kind
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Working.","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"transfer","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"pick","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"},{"id":"b","needs":"approval"},{"id":"c","needs":"client"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool runner ended
      { event: {"type":"xstate.done.actor.tools","actorId":"tools","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // approve
      { event: {"type":"APPROVE","callId":"b","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: saves a handle
      { event: {"type":"HANDLE_SAVED","callId":"b","handle":"job","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000,"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false,"keepsHandle":true},"pick":{"readOnly":false,"idempotent":false,"polling":false},"write":{"readOnly":false,"idempotent":false,"polling":false}}}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool runner ended
      { event: {"type":"xstate.done.actor.tools","actorId":"tools","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"toolOutput"},"status":"active"} },
      // store failed
      { event: {"type":"STORE_FAILED","failure":{"code":"disk_full","message":"The disk is full."},"now":1000}, state: {"value":"ERROR","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 8 })
  })

  test('26. with one call: model: one call of each kind, resumed → MAX_STEPS (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with one call']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: one call of each kind
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Working.","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"transfer","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"pick","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"},{"id":"b","needs":"approval"},{"id":"c","needs":"client"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000,"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"write":{"readOnly":false,"idempotent":false,"polling":false}}}, state: {"value":"MAX_STEPS","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('27. with one call: model: call over budget, resumed → BUDGET_EXCEEDED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with one call']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call over budget
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":999,"outputTokens":1,"totalTokens":1000,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000,"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"write":{"readOnly":false,"idempotent":false,"polling":false}}}, state: {"value":"BUDGET_EXCEEDED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('28. with one call, concluding: model: one call of each kind, resumed, conclusion: recoverable error → MAX_STEPS (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with one call, concluding']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: one call of each kind
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Working.","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"transfer","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"pick","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"},{"id":"b","needs":"approval"},{"id":"c","needs":"client"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000,"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"write":{"readOnly":false,"idempotent":false,"polling":false}}}, state: {"value":{"RUNNING":{"asking":"concluding"}},"status":"active"} },
      // conclusion: recoverable error
      { event: {"type":"xstate.error.actor.conclusion","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":null,"kind":"transient","code":"http_503","message":"It failed: http_503.","jitter":1},"actorId":"conclusion","now":1000}, state: {"value":"MAX_STEPS","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('29. with deferred tools: model: call, tool: loads a tool → WAITING_FOR_TOOL.executing', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with deferred tools']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: loads a tool
      { event: {"type":"TOOLS_LOADED","callId":"a","names":["read","read"],"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('30. with sub-agents: model: two delegations, tool: ok, …, resume, resumed, tool: ok → MAX_STEPS (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with sub-agents']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: two delegations
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"research","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"research","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"},{"id":"b","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: ok
      { event: {"type":"TOOL_RESULT","callId":"a","result":{"status":"ok","content":"The result.","durationMs":1},"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // sub-agent: is paused
      { event: {"type":"CHILD_WAITING","callId":"b","questions":[],"now":1000}, state: {"value":"PAUSED","status":"active"} },
      // steer
      { event: {"type":"STEER","text":"Hurry.","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // sub-agent: reports usage
      { event: {"type":"CHILD_USAGE","callId":"b","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // released before a call
      { event: {"type":"RELEASED","notStarted":["b"],"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // pause
      { event: {"type":"PAUSE","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resume
      { event: {"type":"RESUME","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: ok
      { event: {"type":"TOOL_RESULT","callId":"b","result":{"status":"ok","content":"The result.","durationMs":1},"now":1000}, state: {"value":"MAX_STEPS","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 11 })
  })

  test('31. with sub-agents: model: two delegations, tool: ok, sub-agent: is paused, resume, sub-agent: reports usage over budget → BUDGET_EXCEEDED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with sub-agents']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: two delegations
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"research","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"research","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"},{"id":"b","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: ok
      { event: {"type":"TOOL_RESULT","callId":"a","result":{"status":"ok","content":"The result.","durationMs":1},"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // sub-agent: is paused
      { event: {"type":"CHILD_WAITING","callId":"b","questions":[],"now":1000}, state: {"value":"PAUSED","status":"active"} },
      // resume
      { event: {"type":"RESUME","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // sub-agent: reports usage over budget
      { event: {"type":"CHILD_USAGE","callId":"b","usage":{"inputTokens":999,"outputTokens":1,"totalTokens":1000,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"now":1000}, state: {"value":"BUDGET_EXCEEDED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 6 })
  })

  test('32. with sub-agents: model: two delegations, sub-agent: needs approval, TOOL_RESULT → BUDGET_EXCEEDED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with sub-agents']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: two delegations
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"research","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"research","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"},{"id":"b","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // sub-agent: needs approval
      { event: {"type":"CHILD_WAITING","callId":"a","questions":[{"callId":"q","name":"transfer","arguments":"{\"n\":1}","needs":"approval","fingerprint":"q"}],"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // sub-agent: answers with usage over budget
      { event: {"type":"TOOL_RESULT","callId":"b","result":{"status":"ok","content":"The result.","durationMs":1},"usage":{"inputTokens":999,"outputTokens":1,"totalTokens":1000,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"now":1000}, state: {"value":"BUDGET_EXCEEDED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('33. with sleep: model: call, tool: sleeps, resume at a later time → PAUSED', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with sleep']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: sleeps
      { event: {"type":"TOOL_RESULT","callId":"a","result":{"status":"ok","content":"The result.","durationMs":1,"wakeAt":500000},"now":1000}, state: {"value":"PAUSED","status":"active"} },
      // resume at a later time
      { event: {"type":"RESUME","at":600000,"now":1000}, state: {"value":"PAUSED","status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('34. with sleep: model: waiting for a shared budget → PAUSED', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with sleep']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: waiting for a shared budget
      { event: {"type":"xstate.error.actor.model","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":null,"kind":"fatal","code":"shared_budget","message":"It failed: shared_budget.","jitter":1,"budget":"tenant","wakeAt":700000},"actorId":"model","now":1000}, state: {"value":"PAUSED","status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 2 })
  })

  test('35. with skills: model: skill call, skill: changed → WAITING_FOR_TOOL.executing', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with skills']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: skill call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"s","type":"function","function":{"name":"load_skill","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"s","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // skill: changed
      { event: {"type":"SKILL_CHANGED","callId":"s","change":{"action":"load","name":"reading","hash":"0123456789abcdef","allowedTools":["look"]},"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('36. with handoffs: model: handoff, handoff: handed off → WAITING_FOR_TOOL.executing', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with handoffs']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: handoff
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"h","type":"function","function":{"name":"transfer_to_billing","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"h","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // handoff: handed off
      { event: {"type":"HANDED_OFF","callId":"h","to":"billing","tools":{"look":{"readOnly":true,"idempotent":true,"polling":false}},"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('37. with policies and shields: model: a call that a policy asks about → WAITING_FOR_TOOL.screeningCalls', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with policies and shields']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: a call that a policy asks about
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"g","type":"function","function":{"name":"govern","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"g","needs":"approval","decisions":[{"policy":"p","decision":"allow"},{"policy":"p","decision":"ask"}]}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"screeningCalls"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 2 })
  })

  test('38. with questions that expire: model done, resumed, question expired → PAUSED', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with questions that expire']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: a call and two questions that expire
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"pledge","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"pledge","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody","decisions":[]},{"id":"b","needs":"approval","decisions":[{"policy":"p","decision":"ask","expiresMs":1000}]},{"id":"c","needs":"approval","decisions":[{"policy":"p","decision":"ask","expiresMs":1000,"onExpiry":"pause"}]}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // question expired
      { event: {"type":"APPROVAL_EXPIRED","now":1000000}, state: {"value":"PAUSED","status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('39. with questions that expire: model done, approve during other calls, …, calls allowed, model done, reject during other calls → WAITING_FOR_TOOL.executing', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with questions that expire']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: a call and two questions that expire
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"pledge","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"pledge","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody","decisions":[]},{"id":"b","needs":"approval","decisions":[{"policy":"p","decision":"ask","expiresMs":1000}]},{"id":"c","needs":"approval","decisions":[{"policy":"p","decision":"ask","expiresMs":1000,"onExpiry":"pause"}]}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // approve during other calls
      { event: {"type":"APPROVE","callId":"b","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // question expired
      { event: {"type":"APPROVAL_EXPIRED","now":1000000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool runner gave up
      { event: {"type":"BATCH_DONE","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // approve an edit
      { event: {"type":"APPROVE","callId":"c","arguments":"{\"n\":2}","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"screeningCalls"},"status":"active"} },
      // calls allowed
      { event: {"type":"xstate.done.actor.callShields","output":[{"action":"allow","message":null,"content":"{\"n\":2}","findings":[{"shield":"own","action":"allow","message":null,"durationMs":1}],"callId":"c"}],"actorId":"callShields","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: a call and two questions that expire
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a2","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b2","type":"function","function":{"name":"pledge","arguments":"{\"n\":1}"}},{"id":"c2","type":"function","function":{"name":"pledge","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a2","needs":"nobody","decisions":[]},{"id":"b2","needs":"approval","decisions":[{"policy":"p","decision":"ask","expiresMs":1000}]},{"id":"c2","needs":"approval","decisions":[{"policy":"p","decision":"ask","expiresMs":1000,"onExpiry":"pause"}]}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // reject during other calls
      { event: {"type":"REJECT","callId":"b2","why":"No.","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 9 })
  })

  test('40. with questions that expire: model done, resumed, question expired → CANCELLED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with questions that expire']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: a call and a question that cancels the run on expiry
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"pledge","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody","decisions":[]},{"id":"b","needs":"approval","decisions":[{"policy":"p","decision":"ask","expiresMs":1000,"onExpiry":"cancel"}]}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // question expired
      { event: {"type":"APPROVAL_EXPIRED","now":1000000}, state: {"value":"CANCELLED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('41. with questions that expire: model done, approve during other calls, question expired → CANCELLED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with questions that expire']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: a call and a question that cancels the run on expiry
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"pledge","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody","decisions":[]},{"id":"b","needs":"approval","decisions":[{"policy":"p","decision":"ask","expiresMs":1000,"onExpiry":"cancel"}]}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // approve during other calls
      { event: {"type":"APPROVE","callId":"b","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // question expired
      { event: {"type":"APPROVAL_EXPIRED","now":1000000}, state: {"value":"CANCELLED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('42. with grants: model: two questions, approve with a grant, …, released before a call, revoke an approval, approve → WAITING_FOR_TOOL.executing', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with grants']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: two questions
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"b","type":"function","function":{"name":"lend","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"lend","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"b","needs":"approval"},{"id":"c","needs":"approval"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // approve with a grant
      { event: {"type":"APPROVE","callId":"b","grant":{"id":"once","uses":1},"by":{"id":"bob"},"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: ok
      { event: {"type":"TOOL_RESULT","callId":"b","result":{"status":"ok","content":"The result.","durationMs":1},"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // the grant of a call has ended
      { event: {"type":"GRANT_ENDED","callId":"c","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // give a grant
      { event: {"type":"GRANT","tool":"lend","grant":{"id":"short","when":{"n":{"max":1}},"until":2000},"by":{"id":"bob"},"now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // revoke a grant
      { event: {"type":"REVOKE","grant":"once","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // approve
      { event: {"type":"APPROVE","callId":"c","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // released before a call
      { event: {"type":"RELEASED","notStarted":["c"],"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // revoke an approval
      { event: {"type":"REVOKE","callId":"c","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // approve
      { event: {"type":"APPROVE","callId":"c","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 11 })
  })

  test('43. with grants: model: two questions, approve, revoke an approval, give a grant → WAITING_FOR_TOOL.executing', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with grants']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: two questions
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"b","type":"function","function":{"name":"lend","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"lend","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"b","needs":"approval"},{"id":"c","needs":"approval"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // approve
      { event: {"type":"APPROVE","callId":"b","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // revoke an approval
      { event: {"type":"REVOKE","callId":"b","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // give a grant
      { event: {"type":"GRANT","tool":"lend","grant":{"id":"short","when":{"n":{"max":1}},"until":2000},"by":{"id":"bob"},"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 5 })
  })

  test('44. with grants: model: two questions, approve with a grant, the grant of a call has ended → WAITING_FOR_TOOL.executing', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with grants']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: two questions
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"b","type":"function","function":{"name":"lend","arguments":"{\"n\":1}"}},{"id":"c","type":"function","function":{"name":"lend","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"b","needs":"approval"},{"id":"c","needs":"approval"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"approval"},"status":"active"} },
      // approve with a grant
      { event: {"type":"APPROVE","callId":"b","grant":{"id":"once","uses":1},"by":{"id":"bob"},"now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // the grant of a call has ended
      { event: {"type":"GRANT_ENDED","callId":"c","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('45. ending with a result: model: another call, tool: ok → COMPLETED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['ending with a result']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: another call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"b","type":"function","function":{"name":"look","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"b","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: ok
      { event: {"type":"TOOL_RESULT","callId":"b","result":{"status":"ok","content":"The result.","durationMs":1},"now":1000}, state: {"value":"COMPLETED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })

  test('46. ending with a screened result: model: call, tool: ok, output blocked → BLOCKED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['ending with a screened result']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: ok
      { event: {"type":"TOOL_RESULT","callId":"a","result":{"status":"ok","content":"The result.","durationMs":1},"now":1000}, state: {"value":{"RUNNING":{"asking":"screeningOutput"}},"status":"active"} },
      // output blocked
      { event: {"type":"xstate.done.actor.outputShields","output":{"action":"block","message":"Not that.","content":"Not that.","findings":[{"shield":"own","action":"block","message":"Not that.","durationMs":1}]},"actorId":"outputShields","now":1000}, state: {"value":"BLOCKED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('47. ending with a screened result: model: text → RUNNING.asking.screeningOutput', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['ending with a screened result']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: text
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Done.","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"model","now":1000}, state: {"value":{"RUNNING":{"asking":"screeningOutput"}},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 2 })
  })

  test('48. stopping on results: model: call before an object, resumed, the results end the run → COMPLETED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['stopping on results']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call before an object
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000,"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"write":{"readOnly":false,"idempotent":false,"polling":false}}}, state: {"value":{"WAITING_FOR_TOOL":"consultingOnResults"},"status":"active"} },
      // the results end the run
      { event: {"type":"xstate.done.actor.resultGuards","output":{"states":{"own":1},"findings":[],"warnings":[],"stops":true},"actorId":"resultGuards","now":1000}, state: {"value":"COMPLETED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 4 })
  })

  test('49. stopping on screened results: model: call before an object, resumed, the results end the run, output redacted → COMPLETED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['stopping on screened results']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call before an object
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000,"tools":{"read":{"readOnly":false,"idempotent":false,"polling":false,"endsRun":true},"look":{"readOnly":true,"idempotent":true,"polling":false},"transfer":{"readOnly":false,"idempotent":false,"polling":false},"pick":{"readOnly":false,"idempotent":false,"polling":false},"write":{"readOnly":false,"idempotent":false,"polling":false}}}, state: {"value":{"WAITING_FOR_TOOL":"consultingOnResults"},"status":"active"} },
      // the results end the run
      { event: {"type":"xstate.done.actor.resultGuards","output":{"states":{"own":1},"findings":[],"warnings":[],"stops":true},"actorId":"resultGuards","now":1000}, state: {"value":{"RUNNING":{"asking":"screeningOutput"}},"status":"active"} },
      // output redacted
      { event: {"type":"xstate.done.actor.outputShields","output":{"action":"redact","message":null,"content":"Done.","findings":[{"shield":"own","action":"redact","message":null,"durationMs":1}]},"actorId":"outputShields","now":1000}, state: {"value":"COMPLETED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 5 })
  })

  test('50. with prepared steps: step prepared → RUNNING.asking.requesting', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with prepared steps']}, state: {"value":{"RUNNING":{"preparing":"planningStep"}},"status":"active"} },
      // step prepared
      { event: {"type":"xstate.done.actor.plan","output":{"step":1},"actorId":"plan","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 2 })
  })

  test('51. with content that the provider refuses: model: call, resumed, model: call, resumed, conclusion: content flagged, conclusion: text → MAX_STEPS (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with content that the provider refuses']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a2","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a2","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000}, state: {"value":{"RUNNING":{"asking":"concluding"}},"status":"active"} },
      // conclusion: content flagged
      { event: {"type":"xstate.error.actor.conclusion","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":null,"kind":"fatal","code":"content_filter","message":"It failed: content_filter.","jitter":1,"refusal":{"what":"messages","ids":["m5"],"question":null}},"actorId":"conclusion","now":1000}, state: {"value":{"RUNNING":{"asking":"concluding"}},"status":"active"} },
      // conclusion: text
      { event: {"type":"xstate.done.actor.conclusion","output":{"response":{"text":"Done.","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"conclusion","now":1000}, state: {"value":"MAX_STEPS","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 7 })
  })

  test('52. with content that the provider refuses: model: call, resumed, model: content flagged, model: content flagged over budget → BUDGET_EXCEEDED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['with content that the provider refuses']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // resumed
      { event: {"type":"RESUMED","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: content flagged
      { event: {"type":"xstate.error.actor.model","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":null,"kind":"fatal","code":"content_filter","message":"It failed: content_filter.","jitter":1,"refusal":{"what":"messages","ids":["m3"],"question":null}},"actorId":"model","now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: content flagged over budget
      { event: {"type":"xstate.error.actor.model","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":{"inputTokens":999,"outputTokens":1,"totalTokens":1000,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false},"kind":"fatal","code":"content_filter","message":"It failed: content_filter.","jitter":1},"actorId":"model","now":1000}, state: {"value":"BUDGET_EXCEEDED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 5 })
  })

  test('53. interactive: model: text, reply, model: text, steer → MAX_STEPS (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['interactive']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: text
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Done.","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"message"},"status":"active"} },
      // reply
      { event: {"type":"REPLY","messages":[{"content":"And now?"}],"now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: text
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"Done.","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_INPUT":"message"},"status":"active"} },
      // steer
      { event: {"type":"STEER","text":"Hurry.","now":1000}, state: {"value":"MAX_STEPS","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 5 })
  })

  test('54. near the budget with preflight: model: refused by the budget → BUDGET_EXCEEDED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['near the budget with preflight']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: refused by the budget
      { event: {"type":"xstate.error.actor.model","error":{"status":null,"retryAfterMs":null,"partialText":"","usage":null,"kind":"fatal","code":"token_budget","message":"It failed: token_budget.","jitter":1},"actorId":"model","now":1000}, state: {"value":"BUDGET_EXCEEDED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 2 })
  })

  test('55. concluding near the cost limit: conclusion: text → BUDGET_EXCEEDED (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['concluding near the cost limit']}, state: {"value":{"RUNNING":{"asking":"concluding"}},"status":"active"} },
      // conclusion: text
      { event: {"type":"xstate.done.actor.conclusion","output":{"response":{"text":"Done.","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"conclusion","now":1000}, state: {"value":"BUDGET_EXCEEDED","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 2 })
  })

  test('56. watching repetition, concluding: model: call, tool: ok, …, model: call, conclusion: text, output redacted → ERROR (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['watching repetition, concluding']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: ok
      { event: {"type":"TOOL_RESULT","callId":"a","result":{"status":"ok","content":"The result.","durationMs":1},"now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a2","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a2","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: ok
      { event: {"type":"TOOL_RESULT","callId":"a2","result":{"status":"ok","content":"The result.","durationMs":1},"now":1000}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a3","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a3","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"RUNNING":{"asking":"concluding"}},"status":"active"} },
      // conclusion: text
      { event: {"type":"xstate.done.actor.conclusion","output":{"response":{"text":"Done.","reasoning":"","refusal":null,"toolCalls":[],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[]},"actorId":"conclusion","now":1000}, state: {"value":{"RUNNING":{"asking":"screeningOutput"}},"status":"active"} },
      // output redacted
      { event: {"type":"xstate.done.actor.outputShields","output":{"action":"redact","message":null,"content":"Done.","findings":[{"shield":"own","action":"redact","message":null,"durationMs":1}]},"actorId":"outputShields","now":1000}, state: {"value":"ERROR","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 8 })
  })

  test('57. watching sub-agents: model: call, tool: sub-agent out of quota → ERROR (done)', async () => {
    const steps = [
      // start
      { event: {"type":"xstate.init","input":inputs['watching sub-agents']}, state: {"value":{"RUNNING":{"asking":"requesting"}},"status":"active"} },
      // model: call
      { event: {"type":"xstate.done.actor.model","output":{"response":{"text":"","reasoning":"","refusal":null,"toolCalls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"n\":1}"}}],"finishReason":"stop","complete":true,"model":"m","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10,"cachedInputTokens":0,"reasoningTokens":0,"cost":0,"estimated":false}},"calls":[{"id":"a","needs":"nobody"}]},"actorId":"model","now":1000}, state: {"value":{"WAITING_FOR_TOOL":"executing"},"status":"active"} },
      // tool: sub-agent out of quota
      { event: {"type":"TOOL_RESULT","callId":"a","result":{"status":"error","errorKind":"failed","content":"The sub-agent failed.","durationMs":1,"child":{"state":"ERROR","code":"provider_quota","message":"The account is exhausted."}},"now":1000}, state: {"value":"ERROR","status":"done"} },
    ]
    expect(await replay({ steps }, agentHarness(steps))).toEqual({ ok: true, steps: 3 })
  })
})
