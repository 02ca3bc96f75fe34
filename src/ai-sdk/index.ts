/** Models and tools of the AI SDK for agents. Types alone: the packages are yours to install. */
export { languageModel } from './language-model.js'
export type { AiSdkModel, SpecificationVersion } from './ai-sdk-model.js'
export type { LanguageModelOptions } from './language-model-options.js'
export { aiTools, type AiSdkTool, type AiTools } from './ai-tools.js'
