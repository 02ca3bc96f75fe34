/** Shields, which check content at the input of a run, before and after tools, and at the output of a run. */
export { HoldBack, type HoldBackResult, type HoldBackOptions } from './hold-back.js'
export {
  llamaGuard,
  llamaGuardCategories,
  type LlamaGuardCategory,
  type LlamaGuardOptions,
} from './llama-guard.js'
export {
  type ModerationCategory,
  openaiModeration,
  type OpenAIModerationOptions,
} from './openai-moderation.js'
export type { Screening as ShieldOutcome, ShieldFinding } from '../../../machines/agent/screening.js'
export { type PiiKind, piiKinds } from './pii.js'
export { runShields, type RunShieldsOptions } from './ask-shields.js'
export { type SecretKind, secretKinds } from './secrets.js'
export {
  patternShield,
  type PatternShieldOptions,
  piiShield,
  type PiiShieldOptions,
  secretsShield,
  type SecretsShieldOptions,
} from './pattern-shield.js'
export {
  createShieldSet,
  defineShield,
  type Shield,
  type ShieldAction,
  type ShieldPoint,
  type ShieldContext,
  type ShieldScene,
  type ShieldSet,
  type ShieldsOptions,
  type ShieldVerdict,
} from './define-shield.js'
