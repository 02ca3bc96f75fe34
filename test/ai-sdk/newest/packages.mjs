// In this folder, because Node resolves a package from the importing file.
export { createAnthropic } from '@ai-sdk/anthropic'
export { createGoogleGenerativeAI } from '@ai-sdk/google'
export { createOpenAI } from '@ai-sdk/openai'
export { createOpenAICompatible } from '@ai-sdk/openai-compatible'
