import { scrubEvidence } from '../../../guards/lib/evidence.js'
import { redactAll } from './finder.js'
import { createSecretFinders, secretKinds } from './secrets.js'

const finders = createSecretFinders(secretKinds)

/**
 * Makes a text safe to leave the process by removing everything that `secretsShield` finds or that guard evidence
 * omits. If that fails, the whole text is omitted.
 */
export function scrubSecrets(text: string): string {
  const { text: rest, clean } = redactAll(finders, scrubEvidence(text), () => redacted)
  return clean ? rest : redacted
}

const redacted = '[redacted]'
