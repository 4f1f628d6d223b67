/** Public face of the llm-messages pack: nothing but what it contributes to `LlmAdapters`. */
export {}
