/** Shields, which check content at the input of a run, before and after tools, and at the output of a run. */
export { defineShield } from './define-shield.js'
export { HoldBack, type HoldBackResult, type HoldBackOptions } from './hold-back.js'
export { llamaGuard, type LlamaGuardOptions } from './llama-guard.js'
export { llamaGuardCategories, type LlamaGuardCategory } from './llama-guard.js'
export {
  type ModerationCategory,
  openaiModeration,
  type OpenAIModerationOptions,
} from './openai-moderation.js'
export type { Screening as ShieldOutcome, ShieldFinding } from '../../../machines/agent/screening.js'
export { patternShield, type PatternShieldOptions } from './pattern-shield.js'
export { type PiiKind, piiKinds } from './pii.js'
export { piiShield, type PiiShieldOptions } from './pattern-shield.js'
export { runShields, type RunShieldsOptions } from './ask-shields.js'
export { type SecretKind, secretKinds } from './secrets.js'
export { secretsShield, type SecretsShieldOptions } from './pattern-shield.js'
export type {
  Shield,
  ShieldAction,
  ShieldPoint,
  ShieldContext,
  ShieldScene,
  ShieldVerdict,
} from './define-shield.js'
export { type ShieldSet, createShieldSet, type ShieldsOptions } from './shield-set.js'
