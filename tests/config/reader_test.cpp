// Keys read by name: types, unions, defaults, unknown keys, and all errors of a file at once (REPORTS Y04, Y05).
#include "config/reader.h"

#include <stdexcept>

#include <gmock/gmock.h>

#include "tests/config/support.h"

namespace millrace::config {
namespace {

using testing::ElementsAre;

// What `read` leaves to be said about `text`.
template <class Read>
std::string problems_of(std::string_view text, Read read) {
  Problems problems;
  const Node root = load_text(text, exp_yaml(), problems);
  {
    Reader reader(root, problems);
    read(reader);
  }
  return problems.text();
}

TEST(Reader, ReadsEveryType) {
  const std::string problems = problems_of(
      "name: no\nseed: 7\nlr: 1e-4\ntied: false\nkind: \"off\"\nhidden: [512, 10]\nlimit: 10 s\nbucket: 25 MiB\n"
      "link: 25 Gb/s\nspeed: 15.7 TFLOP/s\n",
      [](Reader& reader) {
        EXPECT_EQ(reader.required("name", Text{}), "no");
        EXPECT_EQ(reader.get("seed", Integer{0}, 1), 7);
        EXPECT_EQ(reader.get("missing", Integer{0}, 1), 1);
        EXPECT_EQ(reader.get("lr", Real{0.0}, 0.0), 1e-4);
        EXPECT_FALSE(reader.get("tied", Boolean{}, true));
        EXPECT_EQ(reader.required("kind", OneOf{{"on", "off"}}), "off");
        EXPECT_THAT(reader.required("hidden", IntegerList{1}), ElementsAre(512, 10));
        EXPECT_EQ(reader.optional("limit", Duration{}), Seconds(10.0));
        EXPECT_EQ(reader.optional("other_limit", Duration{}), std::nullopt);
        EXPECT_EQ(reader.required("bucket", Size{}), 25_MiB);
        EXPECT_EQ(reader.field("link").bandwidth(), BytesPerSecond(3.125e9));
        EXPECT_EQ(reader.field("speed").compute_rate(), FlopsPerSecond(15.7e12));
      });
  EXPECT_EQ(problems, "");
}

TEST(Reader, ReportsAllErrorsInTheOrderOfTheFile) {
  const std::string text =
      "train:\n"
      "  lr: fast\n"
      "  mirco_batches: 4\n"
      "  lr: 2\n"
      "plan:\n"
      "  micro_batches: 1e3\n"
      "  chunks: 0.1\n"
      "  tied: yes\n"
      "  limit: 12\n"
      "  hidden: [1, two]\n"
      "  stages: {a: 1}\n";
  const std::string problems = problems_of(text, [](Reader& reader) {
    reader.required("name", Text{});
    Reader plan = reader.field("plan").map();
    plan.get("micro_batches", Integer{1}, 1);
    plan.get("chunks", Integer{1}, 1);
    plan.get("tied", Boolean{}, false);
    plan.get("limit", Duration{}, Seconds(1.0));
    plan.get("hidden", IntegerList{1}, {});
    plan.field("stages").items();
    Reader train = reader.field("train").map();
    train.get("lr", Real{0.0}, 0.1);
    train.get("micro_batches", Integer{1}, 1);
  });
  EXPECT_EQ(problems,
            "exp.yaml:1:1: name: missing, allowed: text\n"
            "exp.yaml:2:7: train.lr: found 'fast', allowed: number, at least 0\n"
            "exp.yaml:3:3: train.mirco_batches: unknown key 'mirco_batches' (did you mean 'micro_batches'?); valid: "
            "lr, micro_batches\n"
            "exp.yaml:4:3: train.lr: duplicate key: given in line 2 and again in line 4\n"
            "exp.yaml:6:18: plan.micro_batches: found '1e3', allowed: integer, at least 1\n"
            "exp.yaml:7:11: plan.chunks: found '0.1', allowed: integer, at least 1\n"
            "exp.yaml:8:9: plan.tied: found 'yes', allowed: true or false\n"
            "exp.yaml:9:10: plan.limit: found '12', allowed: number with a unit of time (ns, us, ms, s, min, h), such "
            "as 10 us (the unit is missing)\n"
            "exp.yaml:10:15: plan.hidden[1]: found 'two', allowed: integer, at least 1\n"
            "exp.yaml:11:11: plan.stages: found a map, allowed: a list");
}

TEST(Reader, ThrowsThemTogether) {
  Problems problems;
  const Node root = load_text("a: x\nb: y\n", exp_yaml(), problems);
  {
    Reader reader(root, problems);
    reader.get("a", Integer{}, 0);
    EXPECT_THROW(problems.throw_if_any(), std::logic_error);  // the unknown key is not told yet
  }
  EXPECT_EQ(
      refusal([&] { problems.throw_if_any(); }),
      "exp.yaml:1:4: a: found 'x', allowed: integer\nexp.yaml:2:1: b: unknown key 'b' (did you mean 'a'?); valid: a");
}

TEST(Reader, AllowsNotesAndRefusesKeysWhereNoneBelong) {
  EXPECT_EQ(problems_of("x-note: {any: thing}\na: {x-y: 1, z: 2}\n", [](Reader& reader) { reader.field("a").map(); }),
            "exp.yaml:2:13: a.z: unknown key 'z'; none is allowed here");
}

TEST(Reader, AMalformedValueNeverBecomesTheDefault) {
  EXPECT_EQ(problems_of("lr:\nsteps: \"5\"\n",
                        [](Reader& reader) {
                          reader.get("lr", Real{}, 0.1);
                          reader.get("steps", Integer{}, 1);
                        }),
            "exp.yaml:1:1: lr: found nothing, allowed: number\nexp.yaml:2:8: steps: found \"5\", allowed: integer");
}

TEST(Reader, AWrongMapIsOneProblem) {
  EXPECT_EQ(problems_of("train: fast\n",
                        [](Reader& reader) {
                          Reader train = reader.field("train").map();
                          train.required("iterations", Integer{1});
                          Reader optimizer = train.field("optimizer").map();
                          optimizer.required("kind", Text{});
                        }),
            "exp.yaml:1:8: train: found 'fast', allowed: a map");
}

TEST(Reader, AnAbsentMapIsEmpty) {
  EXPECT_EQ(problems_of("a: 1\n",
                        [](Reader& reader) {
                          EXPECT_EQ(reader.required("a", Integer{}), 1);
                          Reader train = reader.field("train").map();
                          EXPECT_EQ(train.get("iterations", Integer{1}, 100), 100);
                          train.required("kind", OneOf{{"sgd"}});
                        }),
            "exp.yaml:1:1: train.kind: missing, allowed: one of: sgd");
}

TEST(Field, ReadsUnions) {
  const std::string problems = problems_of(
      "one: auto\ntwo: 4\nthree: [1, 2]\nfour: {every: 100}\nfive: 1.5\n"
      "partitioner: [dp, {name: exact, order: best}]\nsingle: dp\n",
      [](Reader& reader) {
        EXPECT_TRUE(reader.field("one").is_word("auto"));
        EXPECT_FALSE(reader.field("absent").is_word("auto"));
        EXPECT_EQ(reader.field("two").as(Integer{1}), 4);
        ASSERT_EQ(reader.field("three").items_or_one().size(), 2U);
        EXPECT_EQ(reader.field("three").items()[1].path(), "three[1]");
        EXPECT_EQ(reader.field("four").map().required("every", Integer{1}), 100);
        reader.field("five").expected("auto, a number or a list");
        const auto partitioners = reader.field("partitioner").items_or_one();
        ASSERT_EQ(partitioners.size(), 2U);
        EXPECT_EQ(partitioners[0].as(Text{}), "dp");
        Reader exact = partitioners[1].map();
        EXPECT_EQ(exact.required("name", Text{}), "exact");
        EXPECT_EQ(exact.path(), "partitioner[1]");
        exact.required("order", Integer{});
        EXPECT_EQ(reader.field("single").items_or_one().at(0).path(), "single");
      });
  EXPECT_EQ(problems,
            "exp.yaml:5:7: five: found '1.5', allowed: auto, a number or a list\n"
            "exp.yaml:6:40: partitioner[1].order: found 'best', allowed: integer");
}

TEST(Field, FindsInputFilesBesideTheDocument) {
  const Folder folder;
  const auto data = folder.write("data/d.h5", "");
  const auto file = folder.write("experiments/exp.yaml", "source: ../data/d.h5\nother: none.h5\n");
  Problems problems;
  const Node root = load_file(file, problems);
  {
    Reader reader(root, problems);
    EXPECT_EQ(reader.field("source").input_file(), data);
    reader.field("other").input_file();
  }
  EXPECT_EQ(problems.text().find(file.string() + ":2:8: other: no such file 'none.h5'; looked for " +
                                 (folder.path() / "experiments/none.h5").string() + " and "),
            0U)
      << problems.text();
}

TEST(Reader, GivesTheEntriesOfAFreeMap) {
  problems_of("slowdown: {3: 1.5, x-why: test, 0: 2}\n", [](Reader& reader) {
    Reader slowdown = reader.field("slowdown").map();
    const auto entries = slowdown.entries();
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].first, "3");
    EXPECT_EQ(entries[0].second.as(Real{}), 1.5);
    EXPECT_EQ(entries[1].second.path(), "slowdown.0");
  });
}

TEST(ReadValues, FillsInDefaultsBesideOtherKeys) {
  const Options options{{"order", "node order", OneOf{{"best", "cluster"}}, "best"},
                        {"time_limit", "limit", Duration{}, "10 s"},
                        {"chunks", "how many", Integer{1}, ""}};
  EXPECT_EQ(problems_of("name: dp\norder: cluster\nchunks: 2\n",
                        [&](Reader& reader) {
                          reader.required("name", Text{});
                          const Values values = read_values(reader, options);
                          EXPECT_EQ(values.text("order"), "cluster");
                          EXPECT_EQ(values.duration("time_limit"), Seconds(10.0));
                          EXPECT_EQ(values.integer("chunks"), 2);
                        }),
            "");
  EXPECT_EQ(problems_of("order: beast\ntime_limt: 5 s\n",
                        [&](Reader& reader) {
                          const Values values = read_values(reader, options);
                          EXPECT_EQ(values.integer("chunks"), 0);  // without meaning, but there
                        }),
            "exp.yaml:1:1: chunks: missing, allowed: integer, at least 1\n"
            "exp.yaml:1:8: order: found 'beast', allowed: one of: best, cluster (did you mean 'best'?)\n"
            "exp.yaml:2:1: time_limt: unknown key 'time_limt' (did you mean 'time_limit'?); valid: order, time_limit, "
            "chunks");
}

TEST(Problems, ShowsAtMostAHundred) {
  Problems problems;
  for (int i = 1; i <= 130; ++i) problems.add({exp_yaml(), i, 1}, "k", "bad");
  const std::string text = problems.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 100);
  EXPECT_NE(text.find("\n… and 30 more"), std::string::npos);
}

}  // namespace
}  // namespace millrace::config
