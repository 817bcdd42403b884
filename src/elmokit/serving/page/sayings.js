// What the page says, in English and Chinese.

const SAYINGS = {
  skip: ["Skip to the content", "跳到正文"],
  views: ["Views", "视图"],
  model: ["Model", "模型"],
  api: ["HTTP API", "HTTP 接口"],
  private: ["Texts stay between this browser and this server.", "文本只在此浏览器和此服务器之间传输。"],
  polysemy: ["Polysemy", "一词多义"],
  layers: ["Layers", "各层"],
  language: ["Language model", "语言模型"],
  tasks: ["Tasks", "任务"],
  corpus: ["Corpus", "语料"],
  other_language: ["中文", "English"],
  dark: ["Dark", "深色"],
  light: ["Light", "浅色"],
  show: ["Show", "显示"],
  examples: ["Examples", "例子"],
  word: ["Word", "词"],
  sentence: ["Sentence", "句子"],
  sentences: ["Sentences, one a line", "句子，每行一句"],
  link: ["Copy link", "复制链接"],
  linked: ["The link is copied.", "链接已复制。"],
  working: ["Working…", "计算中…"],
  key_title: ["This server asks for a key", "此服务器需要密钥"],
  key: ["API key", "API 密钥"],
  enter: ["Enter", "进入"],

  polysemy_title: ["One word, many meanings", "一个词，多种意思"],
  polysemy_lead: [
    "A static vector is the same wherever the word stands. ELMo reads the sentence: layer by layer, the uses of a word move apart by what they mean.",
    "静态词向量处处相同；ELMo 会读整句话：一层一层往上，同一个词的不同用法按意思分开。",
  ],
  map: ["The uses at layer {0}", "第 {0} 层的各个用法"],
  layer: ["Layer", "层"],
  play: ["Play", "播放"],
  pause: ["Pause", "暂停"],
  map_hint: [
    "Principal components of each layer. Click or drag a point; the arrow keys go from one to the next.",
    "各层的主成分。可点击或拖动圆点，也可用方向键逐个选择。",
  ],
  alone: ["Layer 0 sees the word alone: all uses coincide.", "第 0 层只看词本身：所有用法重合。"],
  alike: ["How alike the uses are (cosine)", "用法之间的相似度（余弦）"],
  nearest: ["Nearest to the chosen use", "与所选用法最接近的"],
  sense: ["group {0}", "第 {0} 组"],
  all_uses: ["all uses", "全部用法"],

  layers_title: ["What each layer adds", "每一层带来了什么"],
  layers_lead: [
    "The token layer knows only the letters of a word. The layers above read the sentence from both sides. A task mixes them as it needs.",
    "词层只看字形；上面的层从两个方向读整句话。每个任务按需要混合各层。",
  ],
  heat: ["How alike each word is to “{0}”, layer by layer (cosine)", "各层中每个词与“{0}”的相似度（余弦）"],
  compare: ["Compare with", "比较对象"],
  pairs: ["How alike the words are in this mix (cosine)", "在此混合下词与词的相似度（余弦）"],
  mix: ["Mix of the layers", "各层的混合"],
  mix_formula: ["ELMo = γ · Σ softmax(w)ⱼ · hⱼ", "ELMo = γ · Σ softmax(w)ⱼ · hⱼ"],
  mix_hint: [
    "γ scales all vectors: lengths change, angles stay.",
    "γ 同时缩放所有向量：长度改变，角度不变。",
  ],
  mean_length: ["Mean length of a vector", "向量的平均长度"],
  share: ["layer {0}", "第 {0} 层"],

  language_title: ["What comes next, and what came before", "后面是什么，前面又是什么"],
  language_lead: [
    "The same network is a language model that reads from the left and one that reads from the right.",
    "同一个网络既是从左往右读的语言模型，也是从右往左读的语言模型。",
  ],
  surprise: ["Surprise of each word", "每个词的意外程度"],
  surprise_hint: [
    "Bits, the mean of both directions: the stronger the colour, the less expected. Perplexity {0}.",
    "单位为比特，取两个方向的平均：颜色越浓越出乎意料。困惑度 {0}。",
  ],
  fill: ["Words for the gap", "填空"],
  fill_field: ["Sentence with [MASK]", "带 [MASK] 的句子"],
  left: ["from the left", "只看左边"],
  both: ["both sides", "两边都看"],
  right: ["from the right", "只看右边"],
  gap: ["Gap {0}", "第 {0} 个空"],
  complete: ["Go on with a sentence", "续写句子"],
  prompt: ["Beginning", "开头"],
  temperature: ["Temperature", "温度"],
  again: ["Write", "续写"],
  no_lm: ["This model has no softmax, so it is no language model.", "此模型没有 softmax，不是语言模型。"],
  bits: ["{0} bits", "{0} 比特"],
  unknown: ["not in the vocabulary", "不在词表中"],

  tasks_title: ["Trained tasks, on your text", "用训练好的任务处理你的文本"],
  tasks_lead: [
    "Entities, roles, answers and more, marked in the text by the models that this server was started with.",
    "用此服务器加载的模型在文本中标出实体、语义角色、答案等。",
  ],
  no_tasks: [
    "No task is served. Train one with “elmokit train” and start the server with --task FOLDER.",
    "没有加载任务。先用 “elmokit train” 训练一个，再用 --task FOLDER 启动服务器。",
  ],
  task: ["Task", "任务"],
  text: ["Text, one a line", "文本，每行一条"],
  predict: ["Predict", "预测"],
  nothing_to_predict: ["Type a text first.", "请先输入文本。"],
  document: ["Document", "文档"],
  premise: ["Premise", "前提"],
  hypothesis_one: ["Hypothesis", "假设"],
  hypothesis: ["Hypotheses, one a line", "假设，每行一条"],
  passage: ["Passage", "段落"],
  questions: ["Questions, one a line", "问题，每行一个"],
  attention: ["What each word of the hypothesis attends to", "假设中每个词所关注的词"],
  no_answer: ["no answer", "无答案"],
  piece_attention: ["What each written piece attends to", "写出的每个片段所关注的词"],
  no_relations: ["No relation was found.", "没有找到关系。"],
  turns: ["Dialogue, a turn a line", "对话，每行一句"],
  no_frames: ["No predicate was found.", "没有找到谓词。"],
  no_clusters: ["Nothing is mentioned twice.", "没有重复提及的事物。"],

  corpus_title: ["All uses of a word in your text", "一个词在你的文本里的所有用法"],
  corpus_lead: [
    "Drop a text file and name a word. Only the lines that contain it are sent to the server.",
    "拖入一个文本文件，再输入一个词。只有包含该词的行会发给服务器。",
  ],
  drop: ["Drop a text file here, or click to choose one", "把文本文件拖到这里，或点击选择"],
  have_file: ["{0}: {1} lines", "{0}：{1} 行"],
  line_by_line: ["Each line is one sentence", "每行是一个句子"],
  uses_found: ["{0} uses", "{0} 处用法"],
  left_out: ["{0} more are left out", "另有 {0} 处未显示"],
  not_sent: ["{0} lines were too many to send", "有 {0} 行超出上限，未发送"],
  no_file: ["Choose a text file first.", "请先选择一个文本文件。"],
  map_comes: ["The map of the uses will appear here.", "用法的地图将显示在这里。"],
  no_uses: ["The text has no such word.", "文本里没有这个词。"],
  parquet: ["Parquet for embedding-atlas", "Parquet（供 embedding-atlas 使用）"],
  map_of: ["Map of the top layer", "最高层的地图"],
  docs_title: ["HTTP API", "HTTP 接口"],
  docs_lead: [
    "All routes. Errors have the shape of OpenAI's API; /v1/embeddings works with its official client.",
    "全部路径。错误格式与 OpenAI 接口一致；/v1/embeddings 可用其官方客户端访问。",
  ],
  try: ["Send", "发送"],
  body: ["Body", "请求体"],
  back: ["Back to the page", "返回页面"],
};

const wanted =
  new URLSearchParams(location.hash.split("?")[1] ?? "").get("lang") ??
  localStorage.getItem("elmokit-language") ??
  navigator.language;
export let language = wanted.startsWith("zh") ? 1 : 0;

export function setLanguage(number) {
  language = number;
  localStorage.setItem("elmokit-language", number ? "zh" : "en");
  document.documentElement.lang = number ? "zh-Hans" : "en";
}

export const say = (name, ...values) =>
  SAYINGS[name][language].replace(/\{(\d)\}/g, (_, number) => values[number]);
